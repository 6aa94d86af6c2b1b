// How full real servers report to be, and what it costs when they do not answer.
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { PullCollector } from "../../../../src/metrics/prometheus/pull.ts";
import { BuiltInRegistry } from "../../../../src/metrics/prometheus/registry.ts";
import { runKvProcess } from "../../../support/kv/kv-process.ts";
import { opened } from "../../../support/kv/opened.ts";
import { failure } from "../../../support/opened.ts";
import { soon } from "../../../support/pace.ts";
import type { RedisServer } from "../../../support/redis.ts";
import { redisCaches } from "../../../support/redis-caches.ts";
import { startCluster } from "../../../support/redis-cluster.ts";
import { startSentinel } from "../../../support/redis-sentinel.ts";
import { until } from "../../../support/until.ts";

const TIMEOUT_S = 0.5;
/** How much longer than the deadline a call may take on a busy machine. */
const SLACK_MS = 1_500;
const caches = redisCaches({ operationTimeout: TIMEOUT_S });
afterEach(async () => {
  caches.server.thaw();
  await caches.server.cli("CONFIG", "SET", "maxmemory", "0");
});

async function usedMemory(server: RedisServer): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await server.cli("INFO", "memory"))?.[1]);
}

/** Sets its bound so that it is about this full. */
async function fillTo(server: RedisServer, share: number): Promise<void> {
  const bound = Math.round((await usedMemory(server)) / share);
  await server.cli("CONFIG", "SET", "maxmemory", String(bound));
}

describe("one server", () => {
  /** Compared with these bytes, those of clients that come and go are negligible. */
  beforeAll(async () => {
    await caches.server.cli("SETRANGE", "ballast", String(32 * 1024 * 1024), "x");
  });

  it("reports nothing without a bound, and its ratio with one", async () => {
    await using backend = opened(caches.server.url);
    await backend.connect();
    expect(await backend.memoryUsage()).toBeUndefined();
    await fillTo(caches.server, 0.5);
    expect(await backend.memoryUsage()).toBeCloseTo(0.5, 1);
    await fillTo(caches.server, 1.5);
    expect(await backend.memoryUsage()).toBe(1);
  });

  it("is not connected to for that, neither before nor after it is used", async () => {
    await using backend = opened(caches.server.url);
    expect(await failure(backend.memoryUsage())).toMatchObject({ code: "DISCONNECTED" });
    await backend.connect();
    await backend.disconnect();
    expect(await failure(backend.memoryUsage())).toMatchObject({ code: "DISCONNECTED" });
    expect(backend.pool().size).toBe(0);
  });

  it("that is nearly full degrades the health of a cache at the first check, and shows in its metrics", async () => {
    const collector = new PullCollector({ registry: new BuiltInRegistry() });
    // Whatever reads first, and when: a reading is kept for ten seconds.
    await fillTo(caches.server, 0.97);
    const cache = caches.open({ metrics: collector });
    await cache.set("k", 1);
    const detail = await cache.detailedHealthCheck();
    expect(detail.checks.filter(({ ok }) => !ok)).toEqual([
      { name: "memory", ok: false, detail: expect.stringMatching(/^9\d\.\d % of the limit in use$/) },
    ]);
    expect(detail.status).toBe("degraded");
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(detail.performanceMetrics.memoryUsage);
    expect(await collector.metrics()).toContain(
      `xcache_cache_memory_usage ${detail.performanceMetrics.memoryUsage}\n`,
    );
    await collector.close();
  });

  it("that is full and evicts old entries for new ones is healthy", async () => {
    await caches.server.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    try {
      await fillTo(caches.server, 0.97);
      const cache = caches.open();
      await cache.set("k", 1);
      expect((await cache.detailedHealthCheck()).status).toBe("healthy");
    } finally {
      await caches.server.cli("CONFIG", "SET", "maxmemory-policy", "noeviction");
    }
  });

  it("that freezes delays nobody: the last known value is kept, and health ends at the deadline", async () => {
    await fillTo(caches.server, 0.5);
    const cache = caches.open();
    await cache.set("k", 1);
    const { memoryUsage } = (await cache.detailedHealthCheck()).performanceMetrics;
    expect(memoryUsage).toBeCloseTo(0.5, 1);
    caches.server.freeze();
    const began = performance.now();
    expect(cache.getComprehensiveMetrics().memoryUsage).toBe(memoryUsage);
    expect(await cache.detailedHealthCheck()).toMatchObject({ status: "unhealthy" });
    expect(performance.now() - began).toBeLessThan(TIMEOUT_S * 1_000 + soon(SLACK_MS));
    caches.server.thaw();
    await until(() => cache.health(), { what: "it is healthy again" });
  });

  it("that freezes during a check ends it at the deadline", async () => {
    await using backend = opened(caches.server.url, { operationTimeoutMs: 300 });
    await backend.connect();
    caches.server.freeze();
    expect(await failure(backend.memoryUsage())).toMatchObject({ code: "OPERATION_TIMEOUT" });
  });
});

describe("a user without permission to ask", () => {
  const LIMITED = ["ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all"] as const;
  const url = (): string => caches.server.url.replace("://", "://limited:secret@");

  it("gets no ratio, and a server that refused once is not asked again", async () => {
    await fillTo(caches.server, 0.5);
    await caches.server.cli(...LIMITED, "-info");
    const reports: Error[] = [];
    await using backend = opened(url(), { report: (error) => reports.push(error) });
    await backend.connect();
    await caches.server.cli("ACL", "LOG", "RESET");
    for (let look = 0; look < 3; look++) expect(await backend.memoryUsage()).toBeUndefined();
    expect(await caches.server.cli("ACL", "LOG")).toBe("");
    expect(reports.map(({ message }) => message)).toEqual([expect.stringContaining("INFO")]);
    const cache = caches.open({ kvUrl: url() });
    expect(await cache.detailedHealthCheck()).toMatchObject({
      status: "degraded",
      performanceMetrics: { memoryUsage: 0 },
    });
  });

  it("gets no ratio when the permission is revoked later", async () => {
    await fillTo(caches.server, 0.5);
    await caches.server.cli(...LIMITED, "+info");
    await using backend = opened(url());
    await backend.connect();
    expect(await backend.memoryUsage()).toBeGreaterThan(0);
    await caches.server.cli("ACL", "SETUSER", "limited", "-info");
    expect(await backend.memoryUsage()).toBeUndefined();
  });
});

describe("several servers", () => {
  it("a cluster is as full as its fullest master, even while another one is down", async () => {
    await using cluster = await startCluster({ replicas: 0 });
    await using backend = opened(cluster.url);
    await backend.connect();
    expect(await backend.memoryUsage()).toBeUndefined();
    const [first, second, third] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
    await fillTo(first, 0.2);
    await fillTo(second, 0.8);
    expect(await backend.memoryUsage()).toBeCloseTo(0.8, 1);
    await third.kill();
    await until(async () => Math.abs(((await backend.memoryUsage()) ?? 0) - 0.8) < 0.1, {
      what: "the others report",
    });
    await second.kill();
    await until(async () => ((await backend.memoryUsage()) ?? 1) < 0.4, {
      what: "the remaining one reports",
    });
  });

  it("behind sentinels the master counts", async () => {
    await using sentinel = await startSentinel();
    await using backend = opened(sentinel.url);
    await backend.connect();
    const master = await sentinel.master();
    const replica = sentinel.servers.find((server) => server !== master) as RedisServer;
    await fillTo(master, 0.3);
    await fillTo(replica, 0.9);
    expect(await backend.memoryUsage()).toBeCloseTo(0.3, 1);
  });
});

describe("a process that asked", () => {
  const ask = `
    import { SharedStore } from "./core/shared/shared-store.js";
    const backend = new KvBackend({ kvUrl: "URL" });
    const store = new SharedStore(backend, {
      clock: systemClock, codec: {}, breaker: { failureThreshold: 5, resetTimeout: 1 },
      operationTimeoutMs: 500, connectTimeoutMs: 1_000, poolSize: 1,
    });
    await store.connect();
  `;

  it("exits by itself, without waiting for the next check", async () => {
    await fillTo(caches.server, 0.5);
    const { code, words, errors, lingeredMs } = await runKvProcess(`
      ${ask.replace("URL", caches.server.url)}
      say(String((await store.firstMemoryUsage(0)) > 0));
      say(String(store.memoryUsage() > 0));
    `);
    expect({ code, words, errors }).toEqual({ code: 0, words: ["true", "true"], errors: "" });
    expect(lingeredMs).toBeLessThan(soon(SLACK_MS));
  });

  it("exits even while the server does not answer", async () => {
    let frozen = (): void => {};
    const event = new Promise<void>((resolve) => {
      frozen = resolve;
    });
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      ${ask.replace("URL", caches.server.url)}
      const frozen = nextMessage();
      say("connected");
      await frozen;
      say(String(store.memoryUsage()));
    `,
      {
        event,
        onSaid: (word) => {
          if (word !== "connected") return;
          caches.server.freeze();
          frozen();
        },
      },
    );
    expect({ code, words, errors }).toEqual({ code: 0, words: ["connected", "0"], errors: "" });
    expect(lingeredMs).toBeLessThan(500 + soon(SLACK_MS));
  });
});
