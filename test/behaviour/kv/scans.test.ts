// keys() and invalidatePattern on real servers: by cursor, over live entries only, and no further than needed. And scans of
// a server that does not answer properly, or is disconnected.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { BackendError, OperationTimeoutError } from "../../../src/core/errors.ts";
import { XCache } from "../../../src/xcache.ts";
import { commandCounts, countAnew } from "../../support/kv/command-counts.ts";
import { bulk, FakeServer, greet, keeperOf } from "../../support/kv/fake-server.ts";
import { opened } from "../../support/kv/opened.ts";
import { REAL_STORES, type RealStore } from "../../support/kv/real-store.ts";
import { WireTap } from "../../support/kv/wire-tap.ts";
import { failure } from "../../support/opened.ts";
import type { RedisServer } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { Gate } from "../cache/gate.ts";

/** A cursor step covers about a thousand keys, so a full scan takes at least three steps, on three servers too. */
const ENTRIES = 3_000;

async function listed(keys: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const key of keys) found.push(key);
  return found;
}

describe.each(REAL_STORES)("on %s", (_name, start) => {
  let store: RealStore;
  let caches: XCache[] = [];

  beforeAll(async () => {
    store = await start();
  });
  afterAll(() => store[Symbol.asyncDispose]());
  afterEach(async () => {
    for (const cache of caches) await cache.disconnect();
    caches = [];
    await Promise.all(store.masters.map((server) => server.cli("FLUSHALL")));
  });

  function open(config: CacheConfig = {}): XCache {
    const cache = new XCache({ kvUrl: store.url, operationTimeout: 10, ...config });
    caches.push(cache);
    return cache;
  }

  /** A cache with enough entries that a scan takes several steps. */
  async function filled(): Promise<XCache> {
    const cache = open();
    await cache.setMany(Array.from({ length: ENTRIES }, (_, at) => [`k${at}`, at] as const));
    await countAnew(store.masters);
    return cache;
  }

  const scans = async (): Promise<number> => (await commandCounts(store.masters)).scan ?? 0;

  /** Whether a server has a record under exactly this name. */
  const has = async (name: string): Promise<boolean> => (await cli("EXISTS", name)) === "1";

  /** Asks the server that has the key. */
  const cli = (...args: string[]): Promise<string> => (store.masters[0] as RedisServer).cli("-c", ...args);

  /** A signal that aborts as soon as the given number of steps was requested. */
  function abortAtStep(wire: WireTap, step: number, reason = new Error("enough")): AbortSignal {
    const stop = new AbortController();
    let steps = 0;
    wire.hear = ([name]) => {
      if (name === "SCAN" && ++steps === step) stop.abort(reason);
    };
    return stop.signal;
  }

  describe("an AbortSignal", () => {
    it("ends keys() between two steps: no further step is requested, and the connection is closed", async () => {
      const cache = await filled();
      const clients = async (): Promise<number> => {
        const lists = await Promise.all(store.masters.map((server) => server.cli("CLIENT", "LIST")));
        return lists.join("\n").match(/ name=xcache /g)?.length ?? 0;
      };
      const before = await clients();
      const stop = new AbortController();
      let seen = 0;
      for await (const _ of cache.keys("*", { signal: stop.signal })) if (++seen === 1) stop.abort();
      expect(await scans()).toBe(1);
      expect(seen).toBeLessThan(ENTRIES);
      await until(async () => (await clients()) === before, { what: "no connection is left of the scan" });
      expect(new Set(await listed(cache.keys())).size).toBe(ENTRIES);
      expect(await scans()).toBeGreaterThanOrEqual(1 + 3);
    });

    it("ends keys() during a step, which is the last", async () => {
      using wire = new WireTap();
      const cache = await filled();
      const seen = await listed(cache.keys("*", { signal: abortAtStep(wire, 2) }));
      expect(await scans()).toBe(2);
      expect(seen.length).toBeLessThan(ENTRIES);
    });

    it("that is already aborted lets keys() take no step at all", async () => {
      const cache = open();
      await cache.set("k", 1);
      await countAnew(store.masters);
      expect(await listed(cache.keys("*", { signal: AbortSignal.abort() }))).toEqual([]);
      expect(await scans()).toBe(0);
    });

    it("ends invalidatePattern during a step, which is the last; the call rejects, and the other entries stay", async () => {
      using wire = new WireTap();
      const cache = await filled();
      const reason = new Error("enough");
      const signal = abortAtStep(wire, 2, reason);
      await expect(cache.invalidatePattern("k*", { signal })).rejects.toBe(reason);
      const { scan, getdel = 0 } = await commandCounts(store.masters);
      expect(scan).toBe(2);
      expect(getdel).toBeGreaterThan(0);
      expect(getdel).toBeLessThan(ENTRIES);
      expect(new Set(await listed(cache.keys())).size).toBe(ENTRIES - getdel);
    });
  });

  it("listing, counting and removing entries uses a cursor and never KEYS", async () => {
    const cache = open({ enableFuzzy: true });
    const uses: readonly [string, () => Promise<unknown>][] = [
      ["keys", () => listed(cache.keys())],
      ["keys of a pattern", () => listed(cache.keys("k?"))],
      ["getStats", () => cache.getStats()],
      ["getStats, exactly", () => cache.getStats({ exact: true })],
      ["fuzzySearch", () => cache.fuzzySearch("k1")],
      ["invalidatePattern", () => cache.invalidatePattern("k*")],
    ];
    for (const [what, use] of uses) {
      await cache.setMany({ k1: 1, k2: 2, other: 3 }, { tags: ["t"] });
      await countAnew(store.masters);
      await use();
      const { scan = 0, keys = 0 } = await commandCounts(store.masters);
      expect([what, scan >= store.masters.length, keys]).toEqual([what, true, 0]);
    }
    await countAnew(store.masters);
    await cache.invalidateTags("t");
    await cache.clear();
    expect(await commandCounts(store.masters)).not.toHaveProperty("keys");
  });

  it("only live entries are listed and counted: no dead ones, no loads, no records of the library or of others", async () => {
    // Taken as a pattern, the prefix would also match its neighbour.
    const [prefix, neighbour] = ["we*rd[p]", "weXrdp"];
    const [cache, other] = [open({ keyPrefix: prefix }), open({ keyPrefix: prefix })];
    await cache.setMany({ live: 1, "live:too": 2 }, { tags: ["kept"] });
    await cache.set("dead", 1, { tags: ["gone", "kept"] });
    await other.invalidateTags("gone");
    await cache.getOrSet("expired", () => 1, { ttl: 0.02, staleIfError: 600 });
    await until(async () => !(await cache.exists("expired")), { what: "it has expired" });
    const gate = new Gate<string>();
    const loading = cache.getOrSet("loading", gate.load);
    await until(() => gate.calls === 1, { what: "it loads" });
    await cache.namespace("child").set("below", 1);
    await open({ keyPrefix: neighbour }).set("beside", 1);
    await cli("SET", `${prefix}:foreign`, "text");
    await cli("HSET", `${prefix}:foreign-hash`, "field", "text");

    // The server holds all of them.
    const present = ["dead", "expired", "loading", "foreign", "foreign-hash"].map(
      (key) => `${prefix}:${key}`,
    );
    for (const name of [...present, `${prefix}!n`, `${prefix}!t:kept`])
      expect([name, await has(name)]).toEqual([name, true]);

    expect((await listed(cache.keys())).sort()).toEqual(["live", "live:too"]);
    expect(await listed(other.keys("*e*d*"))).toEqual([]);
    expect(await other.getStats({ exact: true })).toMatchObject({ totalKeys: 2, approximate: false });
    expect(await other.invalidatePattern("*")).toBe(2);
    expect(await listed(cache.keys())).toEqual([]);
    await gate.finish("loaded");
    expect(await loading).toBe("loaded");
    expect(await has(`${prefix}:loading`)).toBe(false);
    for (const key of ["!n", "!t:kept", ":foreign", ":foreign-hash", "/child:below"])
      expect([key, await has(prefix + key)]).toEqual([key, true]);
    expect(await has(`${neighbour}:beside`)).toBe(true);
  });
});

describe("a scan", () => {
  let server: FakeServer;

  beforeEach(async () => {
    server = await FakeServer.start();
  });
  afterEach(() => server.stop());

  /** A server with one key, and this reply to a command about it. */
  function answering(name: string, answer: string | undefined): void {
    const keep = keeperOf(new Set(["k"]));
    let isSilent = false;
    server.script = (command, client) => {
      // A server answers in order: after an unanswered command there are no replies.
      if (command[0] === name) isSilent = answer === undefined;
      if (isSilent) return undefined;
      return command[0] === name ? answer : (greet(command, client) ?? keep(command, client));
    };
  }

  async function scanned(backend: KvBackend): Promise<string[]> {
    const found: string[] = [];
    for await (const batch of backend.scan("k")) found.push(...batch.map(({ key }) => key));
    return found;
  }

  const address = (): string => `redis://127.0.0.1:${server.port}`;

  it.each(["SCAN", "GETRANGE", "STRLEN"])("fails when %s is never answered", async (name) => {
    answering(name, undefined);
    await using backend = opened(address(), { operationTimeoutMs: 100 });
    expect(await failure(scanned(backend))).toBeInstanceOf(OperationTimeoutError);
  });

  it.each([
    ["SCAN", "NOPERM this user has no permissions"],
    ["GETRANGE", "NOPERM this user has no permissions"],
    ["STRLEN", "LOADING the dataset is in memory soon"],
    ["GETRANGE", "MOVED 1 10.0.0.1:6379"],
  ])("fails where %s is answered with %s", async (name, words) => {
    answering(name, `-${words}\r\n`);
    await using backend = opened(address());
    const error = await failure(scanned(backend));
    expect(error).toBeInstanceOf(BackendError);
    expect(error.message).toBe(`the store answered: ${words}`);
  });

  it("that is aborted before it begins opens no connection", async () => {
    await using backend = opened(address());
    for await (const _ of backend.scan("k", { signal: AbortSignal.abort() })) expect.unreachable();
    expect(server.clients).toEqual([]);
  });

  it("skips keys that are gone meanwhile or hold no string", async () => {
    await using backend = opened(address());
    answering("UNUSED", undefined);
    expect(await scanned(backend)).toEqual(["k"]);
    answering("GETRANGE", bulk(""));
    expect(await scanned(backend)).toEqual([]);
    answering("GETRANGE", "-WRONGTYPE it is a hash\r\n");
    expect(await scanned(backend)).toEqual([]);
  });

  it("ends with the store: the next step rejects, and no connection is left", async () => {
    answering("SCAN", `*2\r\n${bulk("7")}*1\r\n${bulk("k")}`);
    await using backend = opened(address());
    const steps = backend.scan("k")[Symbol.asyncIterator]();
    expect((await steps.next()).value).toHaveLength(1);
    await backend.disconnect();
    expect(await failure(steps.next())).toMatchObject({ code: "DISCONNECTED" });
    await until(() => server.present.length === 0, { what: "the server sees the connections end" });
  });
});
