// Reads directly after the event loop was blocked: how many may still return what expired meanwhile.
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { XCache } from "../../../src/xcache.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

const real = process.hrtime;
/** No timer runs while it advances, as when the program computes for that long. */
let blockedMs = 0;
let Cache: typeof XCache;
let server: RedisServer;
let opened: XCache[] = [];

beforeAll(async () => {
  process.hrtime = Object.assign(later, real);
  vi.resetModules();
  ({ XCache: Cache } = await import("../../../src/xcache.ts"));
  server = await startRedis({ movableClock: true });
});
afterAll(async () => {
  process.hrtime = real;
  await server?.stop();
});
afterEach(async () => {
  for (const cache of opened) await cache.disconnect();
  opened = [];
});

/** The clock of the cache reads this. */
function later(): [number, number] {
  const [seconds, nanoseconds] = real();
  const whole = nanoseconds + (blockedMs % 1_000) * 1e6;
  return [seconds + Math.floor(blockedMs / 1_000) + Math.floor(whole / 1e9), whole % 1e9];
}

function block(ms: number): void {
  blockedMs += ms;
  // Time passes for the server too.
  server.setClock(blockedMs / 1_000);
}

const KEYS = Array.from({ length: 100 }, (_, at) => `key-${at}`);

async function open(config: CacheConfig): Promise<XCache> {
  const cache = new Cache({
    enableMetrics: false,
    operationTimeout: 60,
    connectTimeout: 60,
    keyPrefix: `blocked-${performance.now()}`,
    ...config,
  });
  opened.push(cache);
  await cache.connect();
  return cache;
}

/** How many sequential reads return an expired value. */
async function servedExpired(cache: XCache, keys: readonly string[]): Promise<number> {
  let served = 0;
  for (const key of keys) if ((await cache.get(key)) !== undefined) served++;
  return served;
}

async function fill(cache: XCache, ttl: number, tags: readonly string[] = []): Promise<void> {
  await cache.setMany(
    KEYS.map((key) => [key, 1] as const),
    { ttl, tags },
  );
  for (let read = 0; read < 3; read++) for (const key of KEYS) expect(await cache.get(key)).toBe(1);
}

const folder = freshFolders();
const STORES: readonly (readonly [string, () => CacheConfig, number])[] = [
  ["memory", () => ({ kvUrl: "memory://" }), 31],
  ["the near tier", () => ({ kvUrl: server.url, nearCache: true }), 31],
  ["Redis", () => ({ kvUrl: server.url }), 0],
  ["disk", () => ({ kvUrl: `file://${folder()}` }), 31],
];

describe.each(STORES)("after the event loop was blocked, %s", (_, config, most) => {
  test.each([
    ["without tags", []],
    ["with tags", ["t"]],
  ])("serves at most as many expired entries %s as documented", async (_title, tags) => {
    const cache = await open(config());
    await fill(cache, 60, tags);
    block(61_000);
    expect(await servedExpired(cache, KEYS)).toBeLessThanOrEqual(most);
    expect((await cache.getMany(KEYS)).size).toBe(0);
  });

  test("for five seconds serves none", async () => {
    const cache = await open(config());
    await fill(cache, 4);
    block(5_000);
    expect(await servedExpired(cache, KEYS)).toBe(0);
  });
});
