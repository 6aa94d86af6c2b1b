// The examples for shared stores, alerts and semantic caching do what their READMEs promise.
import { beforeAll, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { startCluster } from "../support/redis-cluster.ts";
import { storyOf } from "./example.ts";

beforeAll(() => expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined());

test("workers: three processes compute each report once, and again when it is invalidated", async () => {
  const rounds = (await storyOf("workers")).map((line) =>
    /^(.+?) {2,}.* (\d+) are made/.exec(line)?.slice(1),
  );
  expect(rounds).toEqual([
    ["empty folder", "12"],
    ["new processes", "0"],
    ["quarter 1 invalidated", "3"],
  ]);
});

test("cluster: batches, one load and an invalidation reach every node", async () => {
  await using cluster = await startCluster({ replicas: 0 });
  const story = (await storyOf("cluster", { XCACHE_KV_URL: cluster.url })).join("\n");
  expect(story).toMatch(/Paris reads them in one call +500 in/);
  expect(story).toMatch(/a rate nobody has; loads +1$/m);
  expect(story).toMatch(/one of them still finds +0$/m);
  expect(story).toMatch(/another tag +11\.7$/m);
  expect(story).toMatch(/Health +healthy$/m);
});

test("cluster: without a cluster it prints one line that says what it needs", async () => {
  await expect(storyOf("cluster")).rejects.toThrow(/Needs a Redis cluster: XCACHE_KV_URL=/);
});

test("alerts: the webhook is notified of the drop and of the recovery, once each", async () => {
  const story = await storyOf("alerts");
  expect(story.map((line) => line.split(/ +/).slice(0, 2).join(" "))).toEqual([
    "traffic asks",
    "webhook alert.firing",
    "traffic asks",
    "webhook alert.resolved",
    "forged answered",
  ]);
  expect(story.at(-1)).toBe("forged   answered with 401");
});

test("semantic: similar questions cause one call of the model until its answers are invalidated", async () => {
  const story = await storyOf("semantic");
  const sources = story.flatMap((line) => / (model|cache) +\d+ ms /.exec(line)?.[1] ?? []);
  expect(sources).toEqual(["model", "cache", "cache", "model", "model"]);
  expect(story.at(-1)).toContain("3 calls of the model, 2 answers to a question that was alike");
});
