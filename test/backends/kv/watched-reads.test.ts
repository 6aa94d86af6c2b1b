// What the server is asked to tell of: the stamps that are kept, and entries only where they are kept too.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const ENTRIES = Array.from({ length: 100 }, (_, at) => `k${at}`);

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** How many keys the server would tell somebody of. */
async function remembered(): Promise<number> {
  const stats = await server.cli("INFO", "stats");
  return Number(/tracking_total_keys:(\d+)/.exec(stats)?.[1]);
}

/** Reads entries that another process has written; returns how much more the server remembers then. */
async function readAll(cache: XCache, writer: XCache): Promise<number> {
  await writer.setMany(Object.fromEntries(ENTRIES.map((key) => [key, key])), { tags: ["t"] });
  const before = await remembered();
  expect(await cache.get("k0")).toBe("k0");
  expect((await cache.getMany(ENTRIES)).size).toBe(ENTRIES.length);
  await Promise.all(ENTRIES.map(async (key) => expect(await cache.getOrSet(key, () => "none")).toBe(key)));
  return (await remembered()) - before;
}

async function withTwo(
  keyPrefix: string,
  config: { readonly kvUrl?: string; readonly nearCache: boolean },
  run: (cache: XCache, writer: XCache) => Promise<void>,
): Promise<void> {
  const cache = new XCache({ kvUrl: server.url, keyPrefix, ...config });
  const writer = new XCache({ kvUrl: server.url, keyPrefix });
  try {
    await run(cache, writer);
  } finally {
    await cache.disconnect();
    await writer.disconnect();
  }
}

/** A tag that another process invalidates is seen here: its stamp is watched in any case. */
async function expectTold(cache: XCache, writer: XCache): Promise<void> {
  await writer.invalidateTags("t");
  await until(async () => (await cache.get("k0")) === undefined, { what: "it is seen", timeoutMs: 2_000 });
}

describe("the server remembers of what a cache reads", () => {
  it("only the stamps while the near tier is off", async () => {
    await withTwo("off", { nearCache: false }, async (cache, writer) => {
      // The namespace's and the tag's.
      expect(await readAll(cache, writer)).toBeLessThanOrEqual(2);
      await expectTold(cache, writer);
    });
  });

  it("the entries too while it is on", async () => {
    await withTwo("on", { nearCache: true }, async (cache, writer) => {
      expect(await readAll(cache, writer)).toBeGreaterThanOrEqual(ENTRIES.length);
      await expectTold(cache, writer);
    });
  });

  it("the entries too where it may not be told which", async () => {
    await server.cli("ACL", "SETUSER", "plain", "on", ">pass", "~*", "&*", "+@all", "-client|caching");
    const kvUrl = server.url.replace("://", "://plain:pass@");
    await withTwo("plain", { kvUrl, nearCache: false }, async (cache, writer) => {
      expect(await readAll(cache, writer)).toBeGreaterThanOrEqual(ENTRIES.length);
      await expectTold(cache, writer);
    });
  });
});

describe("a right that is taken away while it is in use", () => {
  it("costs the connection, not the truth", async () => {
    await server.cli("ACL", "SETUSER", "brief", "on", ">pass", "~*", "&*", "+@all");
    const kvUrl = server.url.replace("://", "://brief:pass@");
    await withTwo("brief", { kvUrl, nearCache: false }, async (cache, writer) => {
      await writer.set("k0", 1, { tags: ["t"] });
      expect(await cache.get("k0")).toBe(1);
      await server.cli("ACL", "SETUSER", "brief", "-client|caching");
      await writer.set("k1", 1, { tags: ["another"] });
      // Its stamp has to be read, which can no longer be watched on this connection.
      await until(async () => (await cache.get("k1").catch(() => undefined)) === 1, { what: "it is read" });
      await writer.invalidateTags("another");
      await until(async () => (await cache.get("k1")) === undefined, {
        what: "it is seen",
        timeoutMs: 2_000,
      });
    });
  });
});
