// The near tier over a real server: as fast as memory, and never older than the server's latest push.
import { execFileSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { UnsupportedError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { binaryOf } from "../../support/machine.ts";
import { soon } from "../../support/pace.ts";
import { startRedis } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({ nearCache: true });
const { open } = caches;

/** How many reads the server has answered. */
async function reads(): Promise<number> {
  const stats = await caches.server.cli("info", "commandstats");
  const counts = [...stats.matchAll(/cmdstat_m?get:calls=(\d+)/g)].map(([, calls]) => Number(calls));
  return counts.reduce((sum, calls) => sum + calls, 0);
}

/** Reads until the near tier holds the value. */
async function warm(cache: XCache, key: string, value: unknown): Promise<void> {
  for (let read = 0; read < 3; read++) expect(await cache.get(key)).toEqual(value);
}

const sees = (cache: XCache, key: string, value: unknown): Promise<unknown> =>
  until(async () => (await cache.get(key)) === value || undefined, {
    what: `${key} is seen`,
    timeoutMs: 2_000,
  });

describe("a hit", () => {
  it("does not reach the server, with get, getMany and getOrSet, with and without tags", async () => {
    const cache = open();
    await cache.set("plain", 1);
    await cache.set("tagged", 2, { tags: ["t"] });
    await warm(cache, "plain", 1);
    await warm(cache, "tagged", 2);
    const before = await reads();
    for (let read = 0; read < 100; read++) {
      expect(await cache.get("plain")).toBe(1);
      expect(await cache.getOrSet("tagged", () => expect.unreachable())).toBe(2);
      expect([...(await cache.getMany(["plain", "tagged"])).values()]).toEqual([1, 2]);
    }
    expect(await reads()).toBe(before);
  });

  it("returns a copy, or the stored object itself when values are shared", async () => {
    const copying = open();
    await copying.set("k", { list: [1] });
    await warm(copying, "k", { list: [1] });
    const first = (await copying.get("k")) as { list: number[] };
    first.list.push(2);
    expect(await copying.get("k")).toEqual({ list: [1] });
    const sharing = open({ nearCache: { values: "shared" } });
    await warm(sharing, "k", { list: [1] });
    expect(await sharing.get("k")).toBe(await sharing.get("k"));
  });

  it("is at most a second old even when work between successive hits keeps pushes from arriving", async () => {
    const cache = open();
    await cache.set("k", "old");
    await warm(cache, "k", "old");
    // Awaiting it would let the push arrive.
    execFileSync(binaryOf("redis-cli"), ["-p", String(caches.server.port), "del", `${caches.prefix}:k`]);
    const deleted = performance.now();
    let last = deleted;
    while (last - deleted < 5_000 && (await cache.get("k")) !== undefined) {
      last = performance.now();
      while (performance.now() - last < 20);
    }
    expect(last - deleted).toBeLessThan(1_200);
  });

  it("ends with the entry's ttl", async () => {
    const clock = new ManualClock();
    const cache = open({}, clock);
    await cache.set("k", 1, { ttl: 0.9 });
    await warm(cache, "k", 1);
    const before = await reads();
    await clock.advance(890);
    expect(await cache.get("k")).toBe(1);
    expect(await reads()).toBe(before);
    await clock.advance(10);
    expect(await cache.get("k")).toBeUndefined();
  });
});

describe("a change", () => {
  it("of this process is seen at once", async () => {
    const cache = open();
    await cache.set("k", 1, { tags: ["t"] });
    await warm(cache, "k", 1);
    await cache.set("k", 2, { tags: ["t"] });
    expect(await cache.get("k")).toBe(2);
    await warm(cache, "k", 2);
    await cache.invalidateTags("t");
    expect(await cache.get("k")).toBeUndefined();
    await cache.set("k", 3);
    await warm(cache, "k", 3);
    await cache.clear();
    expect(await cache.get("k")).toBeUndefined();
    await cache.set("k", 4);
    await warm(cache, "k", 4);
    expect(await cache.invalidatePattern("k*")).toBe(1);
    expect(await cache.get("k")).toBeUndefined();
  });

  it("of another process is seen as soon as the server pushes it", async () => {
    const [mine, other] = [open(), open()];
    const changes: readonly (readonly [string, (key: string) => Promise<unknown>, unknown])[] = [
      ["set", (key) => other.set(key, "new"), "new"],
      ["delete", (key) => other.delete(key), undefined],
      ["tag", () => other.invalidateTags("t"), undefined],
      ["pattern", () => other.invalidatePattern("pat*"), undefined],
      ["clear", () => other.clear(), undefined],
    ];
    for (const [key, change, expected] of changes) {
      await mine.set(key, "old", { tags: key === "tag" ? ["t"] : [] });
      await warm(mine, key, "old");
      await change(key);
      const started = performance.now();
      if (expected === undefined) {
        await until(async () => (await mine.get(key)) === undefined, {
          what: `${key} is seen`,
          timeoutMs: 2_000,
        });
      } else await sees(mine, key, expected);
      expect(performance.now() - started).toBeLessThan(soon(1_000));
    }
  });

  it("made by flushing the server, or by deleting the entry there, is seen", async () => {
    const cache = open();
    await cache.set("k", 1);
    await warm(cache, "k", 1);
    await caches.server.cli("del", `${caches.prefix}:k`);
    await until(async () => (await cache.get("k")) === undefined, { what: "it is gone", timeoutMs: 2_000 });
  });
});

describe("when no pushes can arrive", () => {
  afterEach(() => caches.server.thaw());

  it.each([0.2, 10])(
    "near copies are served for at most a second, then not at all (operation_timeout %d s)",
    async (operationTimeout) => {
      const clock = new ManualClock();
      const cache = open({ operationTimeout, circuitBreaker: { resetTimeout: 0.1 } }, clock);
      await cache.set("k", 1);
      await warm(cache, "k", 1);
      caches.server.freeze();
      expect(await cache.get("k")).toBe(1);
      await clock.advance(1_000);
      const refused = expect(cache.get("k")).rejects.toThrow(/did not answer|cannot be reached/);
      await clock.advance(operationTimeout * 1_000);
      await refused;
      caches.server.thaw();
      await until(() => clock.advance(20).then(async () => (await cache.get("k")) === 1), {
        what: "k is seen",
        timeoutMs: 2_000,
      });
    },
  );

  it("a lost connection does not leave values stale that changed meanwhile", async () => {
    const [mine, other] = [open(), open()];
    await mine.set("k", "old");
    await warm(mine, "k", "old");
    const clients = await caches.server.cli("client", "list");
    expect(clients).toContain("xcache");
    await caches.server.cli("client", "kill", "type", "normal", "skipme", "yes");
    await until(() => other.set("k", "new").then(() => true), { what: "the other is back" });
    expect(await mine.get("k").catch(() => "new")).toBe("new");
  });
});

describe("a server that may not push invalidations", () => {
  it("leaves the near tier off, which is reported once, and everything else works", async () => {
    const strict = await startRedis({
      acl: ["user default on nopass ~* +@all -client|tracking"],
    });
    try {
      const cache = open({ kvUrl: strict.url });
      const errors: Error[] = [];
      cache.on("error", ({ error }) => errors.push(error));
      await cache.set("k", 1, { tags: ["t"] });
      for (let read = 0; read < 3; read++) expect(await cache.get("k")).toBe(1);
      const other = open({ kvUrl: strict.url });
      await other.invalidateTags("t");
      expect(await cache.get("k")).toBeUndefined();
      expect(errors.filter((error) => error instanceof UnsupportedError)).toHaveLength(1);
    } finally {
      await caches.close();
      await strict.stop();
    }
  });
});

describe("a model of many random changes by two processes", () => {
  it.each([1, 2, 3])("shows no value older than an invalidation that was pushed (seed %i)", async (seed) => {
    const random = seededRandom(seed);
    const [writer, reader] = [open(), open()];
    const keys = ["a", "b", "c"];
    /** The newest version of each key; once the change was pushed, later reads must not be older. */
    const newest = new Map<string, number>();
    let version = 0;
    for (let round = 0; round < 150; round++) {
      const key = keys[Math.floor(random() * keys.length)] as string;
      const choice = random();
      version++;
      if (choice < 0.4) await writer.set(key, version, { tags: [`tag:${key}`] });
      else if (choice < 0.6) await writer.delete(key);
      else if (choice < 0.9) await writer.invalidateTags(`tag:${key}`);
      else await writer.clear();
      if (choice >= 0.9) for (const each of keys) newest.set(each, version);
      else newest.set(key, version);
      // A read on the same connection comes after every push that the change caused.
      await reader.exists(`nothing-${round}`);
      for (const each of keys) {
        const read = await reader.getOrSet(each, () => version, { tags: [`tag:${each}`] });
        expect(read, `${each} in round ${round}`).toBeGreaterThanOrEqual(newest.get(each) ?? 0);
      }
    }
  });
});
