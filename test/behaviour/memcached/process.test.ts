// Separate processes: several load a key once, each exits by itself, and none is kept alive by its store.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  freezeMemcached,
  type MemcachedRing,
  startMemcached,
  startMemcachedRing,
} from "../../support/memcached.ts";
import { OwnProcess } from "../../support/own-process.ts";
import { soon } from "../../support/pace.ts";

/** A process exits within moments, even on a busy machine; a timer or socket of ours would keep it alive longer. */
const MOMENTS_MS = 1_500;
const PROCESSES = 4;
const CALLERS = 100;

const PRELUDE = `
import { MemcachedBackend, XCache } from "./index.js";
const openCache = (kvUrl, config) => new XCache({ operationTimeout: 0.5, ...config, backend: new MemcachedBackend({ kvUrl }) });
`;

/** Its program also has `openCache(url, config)`. */
const started = (program: string): OwnProcess => new OwnProcess(PRELUDE + program);

let ring: MemcachedRing;
beforeAll(async () => {
  ring = await startMemcachedRing(3);
});
afterAll(() => ring.stop());

describe("several processes", () => {
  it.each(["one server", "a ring of three"])(
    "load a cold key once for all their callers, on %s",
    async (on) => {
      const url = on === "one server" ? (ring.servers[0]?.url ?? "") : ring.url;
      const processes = Array.from({ length: PROCESSES }, (_, at) =>
        started(`
          const cache = openCache(${JSON.stringify(url)}, { operationTimeout: 5, keyPrefix: "stampede" });
          await cache.connect();
          say("ready");
          await nextMessage();
          let loads = 0;
          const load = async () => { loads++; say("loading"); await nextMessage(); return "by ${at}"; };
          const values = await Promise.all(Array.from({ length: ${CALLERS} }, () => cache.getOrSet("cold", load)));
          say("answered", { loads, values: [...new Set(values)] });
          await cache.disconnect();
        `),
      );
      await Promise.all(processes.map((each) => each.heard("ready")));
      for (const each of processes) each.tell();
      await Promise.any(processes.map((each) => each.heard("loading")));
      for (const each of processes) each.tell();
      const endings = await Promise.all(processes.map((each) => each.ended()));
      expect(endings.map(({ code }) => code)).toEqual(Array(PROCESSES).fill(0));
      const answers = await Promise.all(processes.map((each) => each.heard("answered")));
      const loads = answers.map((answer) => answer.loads as number);
      expect(loads.reduce((sum, each) => sum + each)).toBe(1);
      const loaded = [`by ${loads.indexOf(1)}`];
      expect(answers.map(({ values }) => values)).toEqual(Array(PROCESSES).fill(loaded));
    },
  );
});

describe("a process exits by itself", () => {
  it("while it is connected and has been used", async () => {
    await using one = started(`
      const cache = openCache(${JSON.stringify(ring.url)}, { poolSize: 2 });
      await cache.connect();
      await cache.set("k", 1);
      say(String(await cache.get("k")));
    `);
    expect(await one.ended()).toMatchObject({ code: 0 });
    expect([one.words, one.errors]).toEqual([["1"], ""]);
    expect(one.lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  it("after disconnecting, even from servers that hang or are gone", async () => {
    await using frozen = await startMemcached();
    await using gone = await startMemcached();
    await using one = started(`
      const caches = ${JSON.stringify([frozen.url, gone.url])}.map((url) => openCache(url));
      for (const cache of caches) await cache.connect();
      for (const cache of caches) await cache.set("k", 1);
      say("connected");
      await nextMessage();
      const failures = await Promise.all(caches.map((cache) => cache.get("k").catch((error) => error.code)));
      for (const cache of caches) cache.get("k").catch(() => {});
      await Promise.all(caches.map((cache) => cache.disconnect()));
      say(failures.join());
    `);
    await one.heard("connected");
    await freezeMemcached(frozen);
    await gone.kill();
    one.tell();
    const { code } = await one.ended();
    expect([code, one.errors]).toEqual([0, ""]);
    expect(one.words[1]).toMatch(/^OPERATION_TIMEOUT,CONNECTION_FAILED$/);
    expect(one.lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  it("while its server is gone and connecting is retried again and again", async () => {
    await using gone = await startMemcached();
    await using one = started(`
      const cache = openCache(${JSON.stringify(gone.url)});
      await cache.connect();
      await cache.set("k", 1);
      say("connected");
      await nextMessage();
      for (let failures = 0; failures < 3; ) await cache.get("k").then(() => {}, () => failures++);
      say("gone");
    `);
    await one.heard("connected");
    await gone.kill();
    one.tell();
    const { code } = await one.ended();
    expect([code, one.words, one.errors]).toEqual([0, ["connected", "gone"], ""]);
    expect(one.lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });
});
