// Commands of a lost connection are not executed after later ones, wherever their bytes were delayed.
import { describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { OperationTimeoutError } from "../../../src/core/errors.ts";
import type { XCache } from "../../../src/xcache.ts";
import { makeCertificates } from "../../support/certificate.ts";
import { timed } from "../../support/opened.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({
  operationTimeout: 0.25,
  circuitBreaker: { failureThreshold: 1_000, resetTimeout: 0.1 },
});

/** The deadline is short compared to what connecting may take on a busy machine. */
const prepared = (mine: XCache): Promise<boolean> =>
  until(() => mine.set("k", "old").then(() => true), { what: "the first value is stored" });

/** A set whose bytes are delayed until another cache has changed the key; resolves with what that one then reads. */
async function overtaken(
  server: RedisServer,
  config: CacheConfig,
  late: (cache: XCache) => Promise<unknown>,
  tlsOptions = "",
) {
  await using relay = await Relay.start(server.port);
  const address = (port: number): string =>
    tlsOptions === "" ? `redis://127.0.0.1:${port}` : `rediss://localhost:${port}${tlsOptions}`;
  const mine = caches.open({ ...config, kvUrl: address(relay.port) });
  const other = caches.open({ ...config, kvUrl: address(server.port), operationTimeout: 10 });
  await prepared(mine);
  await other.set("else", 1);
  // Encrypted requests all look alike.
  relay.holdRequests(tlsOptions === "" ? `${caches.prefix}:k\r\n` : "");
  expect((await timed(late(mine))).outcome).toBeInstanceOf(OperationTimeoutError);
  expect(relay.heldBytes).toBeGreaterThan(0);
  // It has a new connection, over which the pending delete was delivered.
  await until(async () => (await mine.get("k")) === undefined, { what: "mine is back" });
  await other.set("k", "newer");
  // Not the delete that may have followed it over the same connection.
  relay.releaseRequests(1);
  await until(() => relay.connections === (config.poolSize ?? 1), { what: "the old connections have ended" });
  return other.get("k");
}

describe("delayed bytes", () => {
  it.each<[string, (cache: XCache) => Promise<unknown>]>([
    ["set", (cache) => cache.set("k", "late")],
    ["setMany", (cache) => cache.setMany({ k: "late" })],
    ["delete", (cache) => cache.delete("k")],
  ])("do not execute a %s after newer changes", async (_name, late) => {
    expect(await overtaken(caches.server, {}, late)).toBe("newer");
  });

  it("are not executed over TLS either, where a connection cannot be reset", async () => {
    const tls = await makeCertificates();
    await using server = await startRedis({ tls });
    const query = `?tls_ca_file=${encodeURIComponent(tls.caFile)}`;
    expect(await overtaken(server, {}, (cache) => cache.set("k", "late"), query)).toBe("newer");
  });

  it("are not executed with a pool of connections either", async () => {
    expect(await overtaken(caches.server, { poolSize: 3 }, (cache) => cache.set("k", "late"))).toBe("newer");
  });
});

it("a user without the right to kill connections still works, and the missing right is reported once", async () => {
  const acl = ["user default on nopass ~* &* +@all -client|kill", "user admin on >admin ~* &* +@all"];
  await using server = await startRedis({ acl });
  await using relay = await Relay.start(server.port);
  const mine = caches.open({ kvUrl: relay.url });
  const reports: string[] = [];
  mine.on("error", ({ error }) => reports.push(error.message));
  for (let times = 0; times < 2; times++) {
    await prepared(mine);
    relay.holdRequests();
    expect((await timed(mine.set("k", "late"))).outcome).toBeInstanceOf(OperationTimeoutError);
    await until(async () => (await mine.get("k")) === undefined, { what: "mine is back" });
  }
  expect(reports.filter((words) => words.includes("CLIENT KILL"))).toHaveLength(1);
});
