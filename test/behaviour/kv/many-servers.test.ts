// Lookups that ask many servers at the same time: Node warns of more than ten listeners of one signal.
import { afterEach, beforeEach, expect, test } from "vitest";
import { ClusterServers } from "../../../src/backends/kv/cluster/cluster.ts";
import { firstAnswer } from "../../../src/backends/kv/sentinel/first-answer.ts";
import { querySentinel } from "../../../src/backends/kv/sentinel/query.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { endOfTurn, nextTurn } from "../../../src/core/event-loop.ts";
import { Scene } from "../../support/kv/cluster-scene.ts";
import { FakeServer, sentinelFor } from "../../support/kv/fake-server.ts";
import { nodeHost } from "../../support/kv/node-host.ts";
import { until } from "../../support/until.ts";

const SERVERS = 20;
const STAGGER_MS = 100;

/** Asks the next server almost at once. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, run) => systemClock.after(ms === STAGGER_MS ? 1 : ms, run),
};

let warnings: string[] = [];
const note = ({ name, message }: Error): void => void warnings.push(`${name}: ${message}`);

beforeEach(() => {
  warnings = [];
  process.on("warning", note);
});
afterEach(() => {
  process.off("warning", note);
});

/** Warnings are emitted in a later tick. */
async function warned(): Promise<readonly string[]> {
  await endOfTurn();
  await nextTurn();
  return warnings;
}

test("twenty servers of a cluster that do not answer", async () => {
  await using scene = await Scene.start(SERVERS);
  for (const { fake } of scene.servers) fake.script = () => undefined;
  const places = scene.servers.map(({ place }) => place);
  const client = new ClusterServers(places, nodeHost({ clock: hasty, connectTimeoutMs: 60_000 }));
  const connecting = client.connect().catch(() => {});
  await until(() => scene.servers.every(({ fake }) => fake.commands.length > 0), { what: "all are asked" });
  client.close();
  await connecting;
  expect(await warned()).toEqual([]);
});

test("twenty sentinels of which the last one answers", async () => {
  const silent = await Promise.all(
    Array.from({ length: SERVERS - 1 }, () => FakeServer.start(() => undefined)),
  );
  const last = await FakeServer.start(sentinelFor(1));
  const { settings } = nodeHost({ clock: hasty, connectTimeoutMs: 60_000 });
  try {
    const queries = [...silent, last].map(
      ({ endpoint }) =>
        (signal: AbortSignal) =>
          querySentinel(settings, endpoint, "name", signal),
    );
    const { signal } = new AbortController();
    const limits = { clock: hasty, staggerMs: STAGGER_MS, timeoutMs: 60_000, signal };
    expect((await firstAnswer(queries, limits)).master.port).toBe(1);
    expect(await warned()).toEqual([]);
  } finally {
    await Promise.all([...silent, last].map((server) => server.stop()));
  }
});
