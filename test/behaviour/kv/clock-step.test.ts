// A server whose clock is changed while it runs: expired entries do not come back, and no call waits for a dead holder.
import "../../../src/backends/kv/client.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { peekInto } from "../../../src/core/sync-peek.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

const HOUR_S = 3_600;
/** A holder that has not renewed its lease for this long counts as dead. */
const LEASE_S = 6;

let server: RedisServer;
let tests = 0;
let opened: { readonly cache: XCache; readonly clock: ManualClock }[] = [];
/** How far the server's clock is ahead of the real time. */
let ahead = 0;

beforeAll(async () => {
  server = await startRedis({ movableClock: true });
});
afterAll(() => server?.stop());
beforeEach(() => {
  tests++;
});
afterEach(async () => {
  for (const { cache } of opened) await cache.disconnect();
  opened = [];
});

function open(config: CacheConfig = {}): { readonly cache: XCache; readonly clock: ManualClock } {
  const clock = new ManualClock(undefined, 100 * tests + opened.length);
  // Long enough that moving the clock does not time out a running call.
  const limits = { operationTimeout: HOUR_S, enableMetrics: false };
  const cache = cacheWithClock(
    { kvUrl: server.url, keyPrefix: `step-${tests}`, ...limits, ...config },
    clock,
  );
  const one = { cache, clock };
  opened.push(one);
  return one;
}

function step(seconds: number): void {
  ahead += seconds;
  server.setClock(ahead);
}

/** Time passes for the server and for every cache. */
async function pass(
  seconds: number,
  // The answers to earlier calls arrive before those to later ones.
  meanwhile: () => Promise<unknown> = () => Promise.all(opened.map(({ cache }) => cache.exists("any"))),
): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 0.5) {
    step(0.5);
    for (const { clock } of opened) await clock.advance(500);
    await meanwhile();
  }
}

/** What each kind of read returns for a key. */
async function known(cache: XCache, key: string): Promise<readonly string[]> {
  const listed: string[] = [];
  for await (const each of cache.keys()) listed.push(each);
  const seen = {
    peek: peekInto(cache)?.peek(key) !== undefined,
    get: (await cache.get(key)) !== undefined,
    getMany: (await cache.getMany([key])).size > 0,
    exists: await cache.exists(key),
    ttl: (await cache.ttl(key)) !== undefined,
    keys: listed.includes(key),
  };
  return Object.entries(seen).flatMap(([name, isSeen]) => (isSeen ? [name] : []));
}

/** How a process learns the new time: by its heartbeat, or by a new connection. */
const NOTICED: readonly (readonly [string, (cache: XCache) => Promise<unknown>])[] = [
  ["a heartbeat", (cache) => pass(12, () => known(cache, "k"))],
  [
    "a new connection",
    async (cache) => {
      await server.cli("client", "kill", "type", "normal", "skipme", "yes");
      await pass(1, () => cache.exists("k").catch(() => {}));
    },
  ],
];

describe.each([true, false])("an entry that has expired (near cache %s)", (nearCache) => {
  test.each(
    NOTICED.flatMap(([how, notice]) => [HOUR_S, 60, 20, 2].map((backS) => [backS, how, notice] as const)),
  )("does not come back when the clock is set back by %d s, noticed by %s", async (backS, _, notice) => {
    const { cache } = open({ nearCache });
    await cache.getOrSet("k", () => "old", { ttl: 1, staleIfError: 3 * HOUR_S });
    for (let read = 0; read < 3; read++) expect(await cache.get("k")).toBe("old");
    await pass(1.5);
    expect(await known(cache, "k")).toEqual([]);
    step(-backS);
    await notice(cache);
    expect(await known(cache, "k")).toEqual([]);
    // Not even when the clock again shows a time at which it was fresh.
    for (let round = 0; round < 4; round++) {
      await pass(backS <= 20 ? backS / 4 : 1);
      expect(await known(cache, "k")).toEqual([]);
    }
    await cache.set("new", 1, { ttl: 60 });
    expect(await known(cache, "new")).toEqual(
      expect.arrayContaining(["get", "getMany", "exists", "ttl", "keys"]),
    );
  });

  test("early, because the clock was set forward, does not come back when that is corrected", async () => {
    const { cache } = open({ nearCache });
    await cache.getOrSet("k", () => "old", { ttl: 600, staleIfError: 3 * HOUR_S });
    expect(await cache.get("k")).toBe("old");
    step(HOUR_S);
    await pass(12, () => known(cache, "k"));
    expect(await known(cache, "k")).toEqual([]);
    step(-HOUR_S);
    await pass(12, () => known(cache, "k"));
    expect(await known(cache, "k")).toEqual([]);
  });
});

test("a fresh entry stays when only this process's clock has jumped", async () => {
  const { cache, clock } = open();
  await cache.set("k", 1, { ttl: 2 * HOUR_S });
  await clock.jump(HOUR_S * 1_000);
  await pass(1, () => cache.get("k"));
  expect(await cache.get("k")).toBe(1);
});

describe("two processes", () => {
  test("that notice the same step back invalidate once", async () => {
    const [one, other] = [open(), open()];
    await one.cache.set("k", 1);
    expect(await other.cache.get("k")).toBe(1);
    step(-HOUR_S);
    await pass(12, async () => {
      await one.cache.get("k");
      await other.cache.get("k");
    });
    expect(await one.cache.get("k")).toBeUndefined();
    await one.cache.set("k", 2);
    await pass(15, async () => {
      expect(await one.cache.get("k")).toBe(2);
      expect(await other.cache.get("k")).toBe(2);
    });
  });
});

describe("a lease", () => {
  const never = (): Promise<never> => new Promise(() => {});

  /** A process that has died during its load: its clock stands still, and it renews no lease. */
  async function deadHolder(key: string): Promise<void> {
    const { cache } = open();
    let begun = (): void => {};
    const loading = new Promise<void>((resolve) => {
      begun = resolve;
    });
    cache
      .getOrSet(key, () => {
        begun();
        return never();
      })
      .catch(() => {});
    await loading;
    opened = opened.map((one) => (one.cache === cache ? { cache, clock: new ManualClock() } : one));
  }

  test("of a dead holder is not waited for longer because the clock was set back", async () => {
    await deadHolder("k");
    step(-HOUR_S);
    const waiter = open();
    let value: unknown;
    const waiting = waiter.cache
      .getOrSet("k", () => "loaded")
      .then((loaded) => {
        value = loaded;
      });
    await pass(LEASE_S - 0.5);
    expect(value).toBeUndefined();
    // Each of its round trips takes a step here.
    await pass(5);
    expect(value).toBe("loaded");
    await waiting;
    expect(await waiter.cache.get("k")).toBe("loaded");
  });

  test("of a dead holder does not stop calls that never wait from storing", async () => {
    await deadHolder("k");
    step(-HOUR_S);
    const { cache } = open();
    expect(await cache.getOrSet("k", () => 1, { lock: false })).toBe(1);
    expect(await cache.get("k")).toBeUndefined();
    await pass(LEASE_S);
    expect(await cache.getOrSet("k", () => 2, { lock: false })).toBe(2);
    expect(await cache.get("k")).toBe(2);
  });

  test("of a living holder is not taken over by a process that sees the clock set forward first", async () => {
    const waiter = open();
    await waiter.cache.getOrSet("k", () => "stale", { ttl: 1, staleIfError: 3 * HOUR_S });
    await pass(5, () => waiter.cache.exists("k"));
    const holder = open();
    let finish: (value: string) => void = () => {};
    const held = holder.cache.getOrSet(
      "k",
      () =>
        new Promise<string>((resolve) => {
          finish = resolve;
        }),
      { staleIfError: 3 * HOUR_S },
    );
    await pass(1);
    step(HOUR_S);
    await pass(5.5, () => waiter.cache.exists("k"));
    let loads = 0;
    const waiting = waiter.cache.getOrSet("k", () => {
      loads++;
      return "loaded twice";
    });
    await pass(10);
    expect(loads).toBe(0);
    finish("loaded");
    expect(await held).toBe("loaded");
    await pass(1);
    expect(await waiting).toBe("loaded");
  });
});
