// A real server that refuses some commands and serves the rest: out of memory, or missing permissions.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BackendError, UnsupportedError } from "../../../src/core/errors.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({
  operationTimeout: 10,
  circuitBreaker: { failureThreshold: 2, resetTimeout: 30 },
});
const { open } = caches;

describe("a server that is out of memory", () => {
  let full: RedisServer;
  const fill = () => full.cli("config", "set", "maxmemory", "1");

  beforeEach(async () => {
    full = await startRedis({ maxmemory: "100mb" });
  });
  afterEach(async () => {
    await caches.close();
    await full.stop();
  });

  it("can still be read, however many sets it refuses", async () => {
    const cache = open({ kvUrl: full.url });
    await cache.set("k", "v");
    await fill();
    for (let at = 0; at < 5; at++)
      await expect(cache.set(`large ${at}`, "x".repeat(10_000))).rejects.toMatchObject({
        code: "STORE_FAILED",
      });
    expect(await cache.get("k")).toBe("v");
    expect(cache.getComprehensiveMetrics().circuitBreakerOpen).toBe(false);
  });

  it.each([
    ["clear()", (cache: ReturnType<typeof open>) => cache.clear()],
    ["invalidateTags()", (cache: ReturnType<typeof open>) => cache.invalidateTags("t")],
    ["delete()", (cache: ReturnType<typeof open>) => cache.delete("k")],
  ])("still executes %s, for every process", async (_, invalidate) => {
    const [mine, other] = [open({ kvUrl: full.url, nearCache: true }), open({ kvUrl: full.url })];
    await mine.set("k", "old", { tags: ["t"] });
    expect([await mine.get("k"), await other.get("k")]).toEqual(["old", "old"]);
    await fill();
    await invalidate(mine);
    expect([await mine.get("k"), await other.get("k")]).toEqual([undefined, undefined]);
    expect(await mine.getOrSet("k", () => "new")).toBe("new");
    await full.cli("config", "set", "maxmemory", "100mb");
    await other.set("k", "newer");
    expect(await other.get("k")).toBe("newer");
  });
});

describe("a server that cannot save, and so refuses changes", () => {
  it("receives a refused change again before the process that made it serves the entry", async () => {
    await using server = await startRedis();
    const [mine, other] = [open({ kvUrl: server.url, nearCache: true }), open({ kvUrl: server.url })];
    await mine.set("k", "old", { tags: ["t"] });
    await mine.set("other", "kept");
    expect([await mine.get("k"), await other.get("k")]).toEqual(["old", "old"]);
    // A snapshot cannot overwrite a folder.
    mkdirSync(join(server.folder, "dump.rdb"));
    await server.cli("config", "set", "save", "3600 1");
    await server.cli("bgsave");
    await until(async () => /rdb_last_bgsave_status:err/.test(await server.cli("info", "persistence")), {
      what: "it has failed to save",
    });
    await expect(mine.invalidateTags("t")).rejects.toThrow("MISCONF");
    for (let read = 0; read < 3; read++) await expect(mine.get("k")).rejects.toThrow("MISCONF");
    expect([await mine.get("other"), await other.get("k")]).toEqual(["kept", "old"]);
    await server.cli("config", "set", "stop-writes-on-bgsave-error", "no");
    expect([await mine.get("k"), await other.get("k")]).toEqual([undefined, undefined]);
    expect(await mine.get("other")).toBe("kept");
    await caches.close();
  });
});

describe("a cluster that may not push invalidations", () => {
  it("is reported once, not per server, and still serves", async () => {
    const acl = ["user default on nopass ~* +@all -client|tracking"];
    await using cluster = await startCluster({ replicas: 0, redis: { acl } });
    const cache = open({ kvUrl: cluster.url, nearCache: true });
    const errors: Error[] = [];
    cache.on("error", ({ error }) => errors.push(error));
    const keys = Array.from({ length: 50 }, (_, at) => `k${at}`);
    for (const key of keys) await cache.set(key, key);
    expect((await cache.getMany(keys)).size).toBe(keys.length);
    for (const master of await cluster.masters()) await master.cli("client", "kill", "type", "normal");
    await expect
      .poll(() =>
        cache.set("k0", 1).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    expect(errors.filter((error) => error instanceof UnsupportedError)).toHaveLength(1);
    expect(errors.every((error) => error instanceof BackendError)).toBe(true);
    await caches.close();
  });
});
