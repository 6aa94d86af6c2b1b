// A server that comes back without acknowledged writes: invalidated entries do not come back with it.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { XCache } from "../../../src/xcache.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

let server: RedisServer;
let caches: XCache[] = [];

beforeEach(async () => {
  server = await startRedis();
});
afterEach(async () => {
  for (const cache of caches) await cache.disconnect();
  caches = [];
  await server.stop();
});

function open(config: CacheConfig = {}): XCache {
  const cache = new XCache({ kvUrl: server.url, circuitBreaker: { resetTimeout: 0.1 }, ...config });
  caches.push(cache);
  return cache;
}

const answers = (cache: XCache): Promise<unknown> =>
  until(async () => (await cache.get("nothing")) === undefined, { what: "the server answers again" });

/** Crashes the server; it comes back with the snapshot that was saved before. */
async function restore(): Promise<void> {
  await server.restart("SIGKILL");
}

describe("a server restored from an old snapshot", () => {
  it("does not bring back entries invalidated since, however they were invalidated", async () => {
    const cache = open();
    for (const key of ["deleted", "set", "tagged", "matched"]) {
      await cache.set(key, "old", { tags: key === "tagged" ? ["t"] : [] });
    }
    await server.cli("save");
    await cache.delete("deleted");
    await cache.set("set", "new");
    await cache.invalidateTags("t");
    await cache.invalidatePattern("match*");
    await restore();
    await answers(cache);
    for (const key of ["deleted", "tagged", "matched"]) expect(await cache.get(key), key).toBeUndefined();
    expect(await cache.get("set")).not.toBe("old");
  });

  it("does not bring them back for a process started afterwards", async () => {
    const before = open();
    await before.set("k", "old");
    await server.cli("save");
    await before.delete("k");
    await before.disconnect();
    await restore();
    const after = open();
    await answers(after);
    expect(await after.get("k")).toBeUndefined();
  });

  it("does not bring them back under a prefix or in a namespace first used later", async () => {
    const before = open({ keyPrefix: "late" });
    await before.set("k", "old");
    await before.namespace("child").set("k", "old");
    await server.cli("save");
    await before.clear();
    await before.disconnect();
    await restore();
    const other = open({ keyPrefix: "early" });
    await answers(other);
    const late = open({ keyPrefix: "late" });
    expect(await late.get("k")).toBeUndefined();
    expect(await late.namespace("child").get("k")).toBeUndefined();
  });

  it("that lost no invalidation keeps its entries", async () => {
    const cache = open();
    await cache.set("k", 1);
    await server.cli("save");
    await restore();
    await answers(cache);
    await cache.set("k", 2);
    expect(await cache.get("k")).toBe(2);
  });
});

describe("a server that is restored after its clock was set back", () => {
  beforeEach(async () => {
    await server.stop();
    server = await startRedis({ movableClock: true });
  });

  it("does not bring back what another process invalidated since", async () => {
    const [reader, writer] = [open(), open()];
    await reader.connect();
    await writer.set("k", "old");
    await server.cli("save");
    await writer.delete("k");
    // It would repeat what it changed.
    await writer.disconnect();
    server.setClock(-10);
    await restore();
    await answers(reader);
    expect(await reader.get("k")).toBeUndefined();
  });
});

describe("a connection that is lost while the server goes on", () => {
  it("costs no entry", async () => {
    const cache = open();
    await cache.set("k", "kept", { tags: ["t"] });
    await server.cli("client", "kill", "type", "normal", "skipme", "yes");
    await answers(cache);
    expect(await cache.get("k")).toBe("kept");
  });
});

describe("an emptied server", () => {
  it("is empty, and keeps working", async () => {
    const cache = open({ nearCache: true });
    await cache.set("k", 1, { tags: ["t"] });
    expect(await cache.get("k")).toBe(1);
    await server.cli("flushall");
    await until(async () => (await cache.get("k")) === undefined, {
      what: "the near copy is gone",
      timeoutMs: 2_000,
    });
    await cache.set("k", 2, { tags: ["t"] });
    expect(await cache.get("k")).toBe(2);
  });
});
