// Two processes and one real server: answers are found across them, and never after they were invalidated.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { VectorProcess } from "./vector-process.ts";

const ask = (text: string, load = "'loaded'"): string =>
  `return answers.getOrSet(${JSON.stringify(text)}, () => ${load}, { ttl: 60, tags: ["help"] })`;

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe.each([false, true])("with near_cache %s", (nearCache) => {
  let one: VectorProcess;
  let two: VectorProcess;

  beforeAll(async () => {
    // Answers of the other kind of process.
    await server.cli("FLUSHALL");
    const config = { kvUrl: server.url, nearCache };
    [one, two] = [new VectorProcess(config), new VectorProcess(config)];
  });
  afterAll(async () => {
    expect(await Promise.all([one.end(), two.end()])).toEqual([0, 0]);
  });

  test("an answer of one process is served by the other until the first invalidates it", async () => {
    expect(await two.run(ask("weather in Lisbon", "'sunny'"))).toBe("sunny");
    expect(await one.run(ask("How do I reset my password?", "'by link'"))).toBe("by link");
    expect(await two.run(ask("how can I reset my password"))).toBe("by link");
    await one.run(`return answers.invalidateTags("help")`);
    const search = `return answers.search("how can I reset my password")`;
    if (nearCache) await until(async () => !`${await two.run(search)}`, { what: "the push arrives" });
    expect(await two.run(search)).toEqual([]);
    expect(await two.run(ask("how can I reset my password", "'by mail'"))).toBe("by mail");
    expect(await one.run(ask("How do I reset my password?"))).toBe("by mail");
  });

  test("the same text is loaded once in both", async () => {
    const begin = (load: string): string =>
      `globalThis.pending = answers.getOrSet("one load", () => ${load}, { ttl: 60 });`;
    await one.run(begin("new Promise((resolve) => { globalThis.release = resolve; })"));
    const isLoading = async () => (await one.run("return typeof release")) === "function";
    await until(isLoading, { what: "the first is loading" });
    // When another question is answered, the first has been asked.
    await two.run(`${begin("'loaded by two'")} await answers.get("something else")`);
    expect(await one.run("release('loaded by one'); return pending")).toBe("loaded by one");
    expect(await two.run("return pending")).toBe("loaded by one");
  });

  test("answers of a process that was killed are found by one that starts later", async () => {
    const victim = new VectorProcess({ kvUrl: server.url, nearCache });
    await victim.run(ask("delivery of a large parcel", "'tomorrow'"));
    await victim.kill();
    const late = new VectorProcess({ kvUrl: server.url, nearCache });
    expect(await late.run(ask("delivery of large parcels"))).toBe("tomorrow");
    expect(await late.end()).toBe(0);
  });
});

test("an unfinished graph does not keep a process alive that has disconnected", async () => {
  const lone = new VectorProcess({ kvUrl: "memory://", exactUpTo: 1_000 });
  const fill =
    "const faq = cache.namespace('faq'); for (let at = 0; at < 3000; at++) await faq.set('t' + at, " +
    "{ text: 't' + at, model: 'lexical-1-512-english', vector: Float32Array.from({ length: 512 }, Math.random), value: at });";
  await lone.run(`${fill} await answers.ready();`);
  expect(await lone.run("return answers.getStats()")).toMatchObject({ vectors: 3_000, usesGraph: false });
  const late = "process.on('exit', () => { if (answers.getStats().usesGraph) process.exitCode = 5; });";
  await lone.run(late);
  expect(await lone.end()).toBe(0);
});
