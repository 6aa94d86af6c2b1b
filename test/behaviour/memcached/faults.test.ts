// Faulty servers cost a cache at most the deadline and their own keys, and nothing that was invalidated comes back.
import { afterEach, describe, expect, it } from "vitest";
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import { Ring } from "../../../src/backends/memcached/ring.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import {
  BackendError,
  CodecError,
  ConnectionError,
  OperationTimeoutError,
  UnsupportedError,
} from "../../../src/core/errors.ts";
import { spelling } from "../../../src/core/keys.ts";
import { XCache } from "../../../src/xcache.ts";
import {
  freezeMemcached,
  type MemcachedRing,
  type MemcachedServer,
  startMemcached,
  startMemcachedRing,
} from "../../support/memcached.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";

/** No connection came within the call's time: which of the two limits a busy machine reaches first is not determined. */
const isAway = (outcome: unknown): boolean =>
  outcome instanceof ConnectionError || outcome instanceof OperationTimeoutError;

const TIMEOUT_S = 0.3;
/** How much longer than the deadline a call may take on a busy machine. */
const SLACK_MS = 700;

const caches: XCache[] = [];
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
});

function open(kvUrl: string, config: CacheConfig = {}): XCache {
  const cache = new XCache({
    operationTimeout: TIMEOUT_S,
    // So that a few failures do not hide how each of them behaves.
    circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
    ...config,
    backend: new MemcachedBackend({ kvUrl }),
  });
  caches.push(cache);
  return cache;
}

const resumes = (cache: XCache, key = "resumed"): Promise<unknown> =>
  until(async () => (await cache.set(key, 1)) === undefined && (await cache.get(key)) === 1, {
    what: "the cache works again",
  });

/** The initial state of a test: repeated when a busy machine takes longer than the deadline. */
const prepare = (cache: XCache, key: string, tags: readonly string[] = []): Promise<unknown> =>
  until(async () => (await cache.set(key, "old", { tags })) === undefined, { what: `${key} is set` });

/** The server that holds the namespace's stamp, and one that does not. */
function homeAndAway({ servers }: MemcachedRing): readonly [MemcachedServer, MemcachedServer] {
  const layout = new Ring(servers.map(({ port }) => ({ host: "127.0.0.1", port })));
  const home = layout.names[layout.ownerOf(spelling("xcache").namespaceStamp())];
  const isHome = ({ port }: MemcachedServer): boolean => home === `127.0.0.1:${port}`;
  return [servers.find(isHome), servers.find((server) => !isHome(server))] as [
    MemcachedServer,
    MemcachedServer,
  ];
}

describe("a frozen server", () => {
  it("delays each call by at most the deadline, and pending changes are applied once it resumes", async () => {
    await using server = await startMemcached();
    const cache = open(server.url);
    const other = open(server.url);
    await prepare(cache, "deleted");
    await prepare(cache, "tagged", ["t"]);
    await prepare(cache, "set");
    await freezeMemcached(server);
    const calls = [
      cache.get("k"),
      cache.set("set", "new"),
      cache.delete("deleted"),
      cache.getMany(["k", "l"]),
      cache.invalidateTags("t"),
      cache.exists("k"),
    ];
    for (const { ms, outcome } of await Promise.all(calls.map((call) => timed<unknown>(call)))) {
      expect(outcome).toBeInstanceOf(BackendError);
      expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    }
    const { ms, outcome } = await timed(cache.getOrSet("loaded", () => "loaded"));
    expect(outcome).toBe("loaded");
    expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    expect(await cache.health()).toBe(false);
    server.thaw();
    await resumes(cache);
    expect(await cache.get("deleted")).toBeUndefined();
    expect(await cache.get("tagged")).toBeUndefined();
    expect(await cache.get("set")).not.toBe("old");
    await until(async () => (await other.get("resumed")) === 1, { what: "the other one works again" });
    expect(await other.get("deleted")).toBeUndefined();
    expect(await other.get("tagged")).toBeUndefined();
  });
});

describe("a server that is killed", () => {
  it("fails immediately, comes back empty, and is used again automatically", async () => {
    await using server = await startMemcached();
    const cache = open(server.url);
    await prepare(cache, "k", ["t"]);
    await server.kill();
    await until(async () => (await timed(cache.get("k"))).outcome instanceof ConnectionError, {
      what: "it is noticed",
    });
    const { ms } = await timed(cache.get("k"));
    expect(ms).toBeLessThan(soon(SLACK_MS));
    expect(await cache.getOrSet("k", () => "loaded")).toBe("loaded");
    await server.start();
    await resumes(cache);
    expect(await cache.get("k")).toBeUndefined();
  });

  it("or never started is reported by the first call, and used as soon as it is up", async () => {
    await using late = await startMemcached();
    await late.kill();
    const cache = open(late.url);
    expect((await timed(cache.get("k"))).outcome).toBeInstanceOf(ConnectionError);
    await late.start();
    await resumes(cache);
  });
});

describe("a server that is full", () => {
  it("that does not evict refuses with a typed error and a hint; reads, deletes and loads go on", async () => {
    await using server = await startMemcached({ memoryMb: 8, args: ["-M"] });
    const cache = open(server.url, { defaultTtl: 3_600 });
    await cache.set("first", "small");
    const value = "x".repeat(30_000);
    const outcomes = [];
    for (let at = 0; at < 400; at++) outcomes.push((await timed(cache.set(`k${at}`, value))).outcome);
    const refused = outcomes.filter((outcome) => outcome instanceof Error);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toMatchObject({ code: "STORE_FAILED", hint: expect.stringContaining("-m") });
    expect(await cache.getOrSet("more", () => value)).toBe(value);
    expect(await cache.delete("k0")).toBeLessThanOrEqual(1);
    expect(await cache.get("k0")).toBeUndefined();
  });

  it("that evicts causes misses, and nothing that was invalidated comes back", async () => {
    await using server = await startMemcached({ memoryMb: 8 });
    const cache = open(server.url, { defaultTtl: 3_600 });
    const value = "x".repeat(10_000);
    const names = Array.from({ length: 1_500 }, (_, at) => `k${at}`);
    for (const [at, name] of names.entries()) await cache.set(name, value, { tags: [`t${at % 7}`] });
    const before = await cache.getMany(names);
    expect(before.size).toBeLessThan(names.length);
    expect(before.size).toBeGreaterThan(0);
    await cache.invalidateTags("t3");
    for (const name of (await cache.getMany(names)).keys()) expect(Number(name.slice(1)) % 7).not.toBe(3);
    await cache.clear();
    expect((await cache.getMany(names)).size).toBe(0);
    await resumes(cache);
  });
});

describe("a value that is too large", () => {
  it("is rejected before it is sent, the old one stays, and a load's value is returned", async () => {
    await using server = await startMemcached();
    const cache = open(server.url, { operationTimeout: 5 });
    await cache.set("k", "old");
    const large = "x".repeat(2_000_000);
    const { outcome } = await timed(cache.set("k", large));
    expect(outcome).toBeInstanceOf(CodecError);
    expect(outcome).toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(await cache.get("k")).toBe("old");
    expect(await cache.getOrSet("loaded", () => large)).toBe(large);
    expect(await cache.get("loaded")).toBeUndefined();
  });

  it("fits when the server allows it, and only then", async () => {
    await using server = await startMemcached({ maxItemBytes: 4 * 1024 * 1024 });
    const cache = open(server.url, { operationTimeout: 5 });
    const large = "x".repeat(3_000_000);
    await cache.set("k", large);
    expect(await cache.get("k")).toBe(large);
  });
});

describe("two of three servers", () => {
  /** Keys, some on every server. */
  const names = Array.from({ length: 60 }, (_, at) => `key-${at}`);

  it("go on while the third is down, its keys fail, and it comes back without anything old", async () => {
    await using ring = await startMemcachedRing(3);
    const cache = open(ring.url, { circuitBreaker: { failureThreshold: 3, resetTimeout: 30 } });
    for (const name of names) await prepare(cache, name);
    const [home, away] = homeAndAway(ring);
    await away.kill();
    const outcomes = await Promise.all(names.map((name) => timed(cache.get(name))));
    const answered = outcomes.filter(({ outcome }) => outcome === "old").length;
    expect(answered).toBeGreaterThan(10);
    expect(answered).toBeLessThan(names.length);
    for (const { outcome, ms } of outcomes) {
      if (outcome !== "old") expect(isAway(outcome)).toBe(true);
      expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    }
    // Invalidations of keys on the server that is down wait; the others take effect.
    const deleted = await Promise.all(names.map((name) => timed(cache.delete(name))));
    expect(deleted.some(({ outcome }) => outcome === 1)).toBe(true);
    expect(deleted.some(({ outcome }) => isAway(outcome))).toBe(true);
    expect(await cache.getOrSet(names[0] ?? "", () => "loaded")).toBe("loaded");
    await away.start();
    for (const name of names) await resumes(cache, name);
    // Without the server of the namespace's stamp nothing can be validated, and nothing is.
    await home.kill();
    for (const { outcome } of await Promise.all(names.map((name) => timed(cache.get(name)))))
      expect(outcome).toBeInstanceOf(BackendError);
  });

  it("go on immediately while the third is frozen, and its invalidations wait until it resumes", async () => {
    await using ring = await startMemcachedRing(3);
    const cache = open(ring.url);
    for (const name of names) await prepare(cache, name);
    for (const server of ring.servers) {
      await freezeMemcached(server);
      const outcomes = await Promise.all(names.map((name) => timed(cache.delete(name))));
      for (const { ms } of outcomes) expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
      // Once it is known to be down, calls that need it fail immediately.
      const again = await Promise.all(names.map((name) => timed(cache.get(name))));
      for (const { ms } of again) expect(ms).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
      server.thaw();
      const found = await until(() => Promise.all(names.map((name) => cache.get(name))), {
        what: "all are back",
      });
      expect(found).not.toContain("old");
      for (const name of names) await prepare(cache, name);
    }
  });

  it("are enough to start with", async () => {
    await using ring = await startMemcachedRing(3);
    const [, away] = homeAndAway(ring);
    await away.kill();
    const cache = open(ring.url);
    await cache.connect();
    const outcomes = await Promise.all(names.map((name) => timed(cache.set(name, 1))));
    const failed = outcomes.filter(({ outcome }) => outcome instanceof Error);
    expect(failed.length).toBeGreaterThan(0);
    expect(failed.length).toBeLessThan(names.length);
    expect(failed.every(({ outcome }) => isAway(outcome))).toBe(true);
    await away.start();
    for (const name of names) await resumes(cache, name);
  });
});

describe("what memcached cannot do", () => {
  it("is reported, with an alternative", async () => {
    await using server = await startMemcached();
    const cache = open(server.url);
    await cache.set("k", 1);
    const { outcome } = await timed(cache.invalidatePattern("k*"));
    expect(outcome).toBeInstanceOf(UnsupportedError);
    expect(outcome).toMatchObject({ hint: expect.stringContaining("tag") });
    expect(await cache.getStats()).toMatchObject({ approximate: true, scope: "server" });
  });
});

it("a server that is listed twice is rejected, in whatever case", () => {
  expect(() => new MemcachedBackend({ kvUrl: "memcached://cache:1,Cache:1" })).toThrow(/twice/);
  expect(() => new MemcachedBackend({ kvUrl: "memcached://cache:1,cache:2" })).not.toThrow();
});

it("an address of another kind is rejected", () => {
  expect(() => new MemcachedBackend({ kvUrl: "redis://user:secret@h" })).toThrow(
    /must be an address of memcached/,
  );
  expect(() => new MemcachedBackend({ kvUrl: "redis://user:secret@h" })).not.toThrow(/secret/);
});
