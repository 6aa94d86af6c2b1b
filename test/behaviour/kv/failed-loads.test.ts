// Loads that fail, skip or never end, seen by other processes: a call waits for at most one load, and only up to its limit.
import "../../../src/backends/kv/client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { LoadContext } from "../../../src/core/options.ts";
import { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { Gate } from "../cache/gate.ts";

let redis: RedisServer;
let memcached: MemcachedServer;
const folder = freshFolders();
beforeAll(async () => {
  [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
});
afterAll(() => Promise.all([redis?.stop(), memcached?.stop()]));

/** A configuration for caches that share a store as processes do: each has a backend of its own. */
const STORES: readonly (readonly [string, () => CacheConfig])[] = [
  ["redis", () => ({ kvUrl: redis.url })],
  ["redis with a near tier", () => ({ kvUrl: redis.url, nearCache: true })],
  ["memcached", () => ({ kvUrl: memcached.url })],
  [
    "disk",
    () => {
      const kvUrl = `file://${folder()}`;
      return { kvUrl };
    },
  ],
];

let names = 0;

interface Fleet extends AsyncDisposable {
  readonly caches: readonly XCache[];
}

async function fleet(count: number, config: CacheConfig): Promise<Fleet> {
  const keyPrefix = `failed ${names++}`;
  const caches = Array.from(
    { length: count },
    () => new XCache({ operationTimeout: 5, ...config, keyPrefix }),
  );
  await Promise.all(caches.map((cache) => cache.connect()));
  return {
    caches,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(caches.map((cache) => cache.disconnect()));
    },
  };
}

/** Resolves after more round trips than a call needs to find another's lease, so it is waiting by then. */
async function hasAsked(cache: XCache): Promise<void> {
  for (let trip = 0; trip < 10; trip++) await cache.exists("k");
}

const ENDS: readonly (readonly [string, (context: LoadContext<unknown>) => unknown])[] = [
  [
    "fails",
    () => {
      throw new Error("down");
    },
  ],
  [
    "skips",
    ({ skip }) => {
      skip();
      return "skipped";
    },
  ],
  ["returns undefined", () => undefined],
];

describe.each(STORES)("on %s", (_name, config) => {
  test.each(ENDS)(
    "the waiters for a load that %s proceed at once, each once, in parallel",
    async (_end, end) => {
      const processes = 6;
      await using running = await fleet(processes, config());
      let isOpen = (): void => {};
      const opened = new Promise<void>((resolve) => {
        isOpen = resolve;
      });
      let loads = 0;
      const load = async (context: LoadContext<unknown>): Promise<unknown> => {
        const isFirst = ++loads === 1;
        if (isFirst) await opened;
        // The loads end only together: if one waited for another, none would end.
        else await until(() => loads === processes, { what: "all load at once", timeoutMs: 1_000 });
        return end(context);
      };
      const [first, ...others] = running.caches;
      const settled = (call: Promise<unknown>): Promise<unknown> =>
        call.catch(({ message }: Error) => message);
      const calls = [settled(first!.getOrSet("k", load))];
      await until(() => loads === 1, { what: "the first loads" });
      for (const cache of others) calls.push(settled(cache.getOrSet("k", load)));
      await Promise.all(others.map(hasAsked));
      expect(loads).toBe(1);
      isOpen();
      expect(new Set(await Promise.all(calls)).size).toBe(1);
      expect(loads).toBe(processes);
      for (const cache of running.caches) {
        expect([await cache.get("k"), await cache.exists("k"), await cache.ttl("k")]).toEqual([
          undefined,
          false,
          undefined,
        ]);
      }
      // A load that succeeds is the only one again.
      let good = 0;
      const goodLoad = async (): Promise<string> => {
        good++;
        return "good";
      };
      const values = await Promise.all(running.caches.map((cache) => cache.getOrSet("k", goodLoad)));
      expect([good, new Set(values)]).toEqual([1, new Set(["good"])]);
    },
  );

  test("a load that ended without a value is not listed or counted", async () => {
    await using running = await fleet(1, config());
    const [cache] = running.caches as [XCache];
    await cache.getOrSet("k", () => Promise.reject(new Error("down"))).catch(() => {});
    await cache.set("other", 1);
    if ((config().kvUrl ?? "").startsWith("memcached")) return;
    const keys: string[] = [];
    for await (const key of cache.keys()) keys.push(key);
    expect(keys).toEqual(["other"]);
    expect((await cache.getStats({ exact: true })).totalKeys).toBe(1);
    expect(await cache.delete("k")).toBe(0);
  });

  test.each([
    ["delete", (cache: XCache) => cache.delete("k")],
    ["invalidateTags", (cache: XCache) => cache.invalidateTags(["t"])],
    ["clear", (cache: XCache) => cache.clear()],
  ])("after a %s the next load is the only one, though the one before it fails", async (_how, invalidate) => {
    await using running = await fleet(4, config());
    const [first, second, ...waiting] = running.caches as [XCache, XCache, ...XCache[]];
    const options = { tags: ["t"] };
    const doomed = new Gate<string>();
    const failed = first.getOrSet("k", doomed.load, options).catch(String);
    await until(() => doomed.calls === 1, { what: "the first loads" });
    await invalidate(second);
    const good = new Gate<string>();
    const answers = [second.getOrSet("k", good.load, options)];
    await until(() => good.calls === 1, { what: "the second loads" });
    for (const cache of waiting) answers.push(cache.getOrSet("k", good.load, options));
    await doomed.fail(new Error("down"));
    await failed;
    await Promise.all(waiting.map(hasAsked));
    await good.finish("good");
    expect(await Promise.all(answers)).toEqual(["good", "good", "good"]);
    expect(good.calls).toBe(1);
  });

  test("a value invalidated while a call waits for a lease is not passed to its load as stale", async () => {
    await using running = await fleet(3, config());
    const [holder, waiter, other] = running.caches as [XCache, XCache, XCache];
    const options = { ttl: 0.05, tags: ["t"], staleIfError: 600 };
    await holder.getOrSet("k", () => "old", options);
    // The process that stored it knows its expiry exactly, others only within the error of the store's clock.
    for (const cache of [holder, waiter])
      await until(async () => !(await cache.exists("k")), { what: "it has expired" });
    const gate = new Gate<string>();
    const held = holder.getOrSet("k", gate.load, { ...options, ttl: 60 });
    await until(() => gate.calls === 1, { what: "the holder loads" });
    expect(gate.contexts[0]?.stale).toBe("old");
    let stale: string | undefined = "nothing yet";
    const waiting = waiter.getOrSet<string>(
      "k",
      (context) => {
        stale = context.stale;
        return context.stale ?? "new";
      },
      { ...options, ttl: 60 },
    );
    await hasAsked(waiter);
    await other.invalidateTags(["t"]);
    expect(await waiting).toBe("new");
    expect(stale).toBeUndefined();
    await gate.finish("from before");
    await held;
    await until(async () => (await other.get("k")) === "new", { what: "the new value is stored" });
  });

  test("a load that exceeds loadLimit is no longer waited for, in its own process or in others", async () => {
    await using running = await fleet(2, { ...config(), loadLimit: 0.4 });
    const [slow, other] = running.caches as [XCache, XCache];
    const gate = new Gate<string>();
    const own = slow.getOrSet("k", gate.load);
    await until(() => gate.calls === 1, { what: "the slow one loads" });
    const began = performance.now();
    let loads = 0;
    const load = async (): Promise<string> => {
      loads++;
      return "by another";
    };
    const answers = await Promise.all([
      slow.getOrSet("k", load),
      slow.getOrSet("k", load),
      other.getOrSet("k", load),
    ]);
    expect(answers).toEqual(Array(3).fill("by another"));
    expect(loads).toBeLessThanOrEqual(2);
    expect(performance.now() - began).toBeLessThan(400 + soon(1_500));
    // Its own caller waits for it to the end, and does not overwrite what is newer.
    await gate.finish("late");
    expect(await own).toBe("late");
    expect([await slow.get("k"), await other.get("k")]).toEqual(["by another", "by another"]);
  });

  test("two keys whose loads wait for each other in two processes are both answered", async () => {
    await using running = await fleet(2, { ...config(), loadLimit: 0.4 });
    const [one, other] = running.caches as [XCache, XCache];
    const loading: string[] = [];
    const both = (): Promise<unknown> =>
      until(() => loading.includes("x") && loading.includes("y"), { what: "both load" });
    const x = one.getOrSet("x", async () => {
      loading.push("x");
      await both();
      return `x of ${await one.getOrSet("y", () => "own y")}`;
    });
    const y = other.getOrSet("y", async () => {
      loading.push("y");
      await both();
      return `y of ${await other.getOrSet("x", () => "own x")}`;
    });
    expect(await Promise.all([x, y])).toEqual([
      expect.stringMatching(/^x of /),
      expect.stringMatching(/^y of /),
    ]);
  });

  test("the result of a slow load is stored if no other load ran since its limit", async () => {
    await using running = await fleet(1, { ...config(), loadLimit: 0.05 });
    const [cache] = running.caches as [XCache];
    const gate = new Gate<string>();
    const own = cache.getOrSet("k", gate.load, { ttl: 60 });
    await until(() => gate.calls === 1, { what: "it loads" });
    const began = performance.now();
    await until(() => performance.now() - began > 150, { what: "the limit has passed" });
    await gate.finish("late");
    expect(await own).toBe("late");
    expect(await cache.get("k")).toBe("late");
  });
});
