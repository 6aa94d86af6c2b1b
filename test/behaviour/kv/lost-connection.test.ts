// A lost connection is one failure: reads are retried, only writes in flight fail, and service resumes at once.
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { CircuitOpenError } from "../../../src/core/errors.ts";
import { FakeServer, greet } from "../../support/kv/fake-server.ts";
import { Load } from "../../support/load.ts";
import { timed } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisCaches } from "../../support/redis-caches.ts";
import { startSentinel } from "../../support/redis-sentinel.ts";
import { Relay } from "../../support/relay.ts";
import { until } from "../../support/until.ts";

// Nothing here may depend on a probe of the circuit breaker: the first one would come after the test.
const caches = redisCaches({ circuitBreaker: { failureThreshold: 5, resetTimeout: 60 } });
const { open } = caches;

const kill = (server: RedisServer): Promise<string> =>
  server.cli("client", "kill", "type", "normal", "skipme", "yes");

const opened: RedisServer[] = [];
afterEach(async () => {
  for (const server of opened.splice(0)) await server.stop();
});

/** A server of the test's own. */
async function ownServer(options: Parameters<typeof startRedis>[0] = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  opened.push(server);
  return server;
}

describe.each([
  { poolSize: 1, address: "url" },
  { poolSize: 8, address: "url" },
  { poolSize: 1, address: "unixUrl" },
] as const)("under load, with pool_size $poolSize at $address", ({ poolSize, address }) => {
  it("one CLIENT KILL fails the writes in flight and nothing else", async () => {
    const server = await ownServer({ unixsocket: true });
    const load = new Load(open({ kvUrl: server[address] as string, poolSize, operationTimeout: 10 }));
    await load.start();
    await load.run(150);
    await kill(server);
    await load.run(350);
    await load.stop();
    expect(load.reads).toEqual([]);
    // A write is answered within a few milliseconds: one or two ticks' worth are in flight.
    expect(load.writes.length).toBeLessThanOrEqual(soon(3));
    expect(load.states).toEqual([]);
    expect(load.succeededAt).toBeGreaterThan(load.failedAt);
  });
});

it("a kill every 50 ms fails no read and opens no circuit", async () => {
  const server = await ownServer();
  const load = new Load(open({ kvUrl: server.url, operationTimeout: 10 }));
  await load.start();
  let kills = 0;
  for (; kills < 12; kills++) {
    await pause(50);
    await kill(server);
  }
  await load.run(150);
  await load.stop();
  expect(load.reads).toEqual([]);
  expect(load.states).toEqual([]);
  expect(load.writes.length).toBeLessThanOrEqual(kills * soon(3));
});

it.each(["PING", "SET"])(
  "a health check whose connection is lost at its %s is repeated on the next one",
  async (at) => {
    let isDue = false;
    await using server = await FakeServer.start((command, client) => {
      const [name] = command;
      if (isDue && name === at) {
        isDue = false;
        client.socket.destroy();
      }
      if (name === "GET") return "_\r\n";
      return name === "SET" ? "+OK\r\n" : greet(command, client);
    });
    await using cache = open({ kvUrl: `redis://127.0.0.1:${server.port}`, operationTimeout: 10 });
    await cache.connect();
    isDue = true;
    expect((await cache.healthCheck()).error).toBeUndefined();
    expect(isDue).toBe(false);
  },
);

describe("a server that restarts under load", () => {
  it("is used as soon as it listens, whatever the breaker's reset_timeout", async () => {
    const server = await ownServer();
    const cache = open({ kvUrl: server.url, operationTimeout: 0.2 });
    const load = new Load(cache);
    await load.start();
    await load.run(50);
    await server.kill();
    await until(() => load.states.includes("open"), { what: "the circuit opens" });
    await server.start();
    const listens = performance.now();
    await until(() => load.succeededAt > listens, { what: "service resumes" });
    expect(performance.now() - listens).toBeLessThan(soon(700));
    await load.run(30);
    const failures = load.reads.length + load.writes.length;
    await load.run(100);
    await load.stop();
    expect(load.reads.length + load.writes.length, "after it resumed").toBe(failures);
    expect(load.states.at(-1)).toBe("closed");
  });

  it("fails only the writes in flight if it is back within operation_timeout", async () => {
    const server = await ownServer();
    const load = new Load(open({ kvUrl: server.url, operationTimeout: 5 }));
    await load.start();
    await load.run(50);
    await server.restart();
    await load.run(50);
    await load.stop();
    expect(load.reads).toEqual([]);
    expect(load.writes.length).toBeLessThanOrEqual(soon(3));
    expect(load.states).toEqual([]);
  });
});

describe("a server that cannot be reached", () => {
  it("delays a call by at most operation_timeout, then by microseconds", async () => {
    const server = await ownServer();
    const cache = open({ kvUrl: server.url, operationTimeout: 0.2 });
    cache.on("error", () => {});
    await cache.set("k", 1);
    await server.kill();
    let [failures, waits] = [0, 0];
    for (;;) {
      const { ms, outcome } = await timed(cache.get("k"));
      if (outcome instanceof CircuitOpenError) break;
      expect(outcome).toMatchObject({ name: "ConnectionError" });
      expect(ms).toBeLessThan(200 + soon(150));
      // All calls that wait in vain for the connection in place of the lost one are a single failure.
      if ((outcome as Error).message.startsWith("no connection to the store within")) waits++;
      else failures++;
      expect(failures + waits).toBeLessThanOrEqual(6);
    }
    expect(failures + Math.min(waits, 1)).toBe(5);
  });
});

describe("a pending invalidation", () => {
  it("is delivered within a second of the store's return, without any call", async () => {
    await using relay = await Relay.start((await ownServer()).port);
    const mine = open({ kvUrl: relay.url, operationTimeout: 0.2 });
    const other = open({ kvUrl: relay.url });
    for (const cache of [mine, other]) cache.on("error", () => {});
    await mine.set("tagged", "old", { tags: ["t"] });
    await mine.set("deleted", "old");
    expect(await other.get("tagged")).toBe("old");
    await relay.whileAway(async () => {
      for (let call = 0; call < 6; call++) await timed(mine.invalidateTags("t"));
      await timed(mine.delete("deleted"));
      expect((await timed(mine.get("k"))).outcome).toBeInstanceOf(CircuitOpenError);
      // Long enough for the longest pause between attempts.
      await pause(1_500);
    });
    const back = performance.now();
    const isGone = async (key: string): Promise<boolean> => (await other.get(key)) === undefined;
    await until(async () => (await isGone("tagged")) && (await isGone("deleted")), {
      what: "others see it",
      timeoutMs: 5_000,
    });
    expect(performance.now() - back).toBeLessThan(soon(1_000));
  });
});

it("a failover by sentinels interrupts service for no longer than the failover takes", async () => {
  await using sentinel = await startSentinel();
  const [before] = sentinel.servers;
  const load = new Load(open({ kvUrl: sentinel.url, operationTimeout: 0.5 }));
  await load.start();
  await load.run(50);
  await before.kill();
  const after = await until(
    async () => {
      const master = await sentinel.master();
      return master !== before && master;
    },
    { what: "the replica is the master" },
  );
  await until(async () => (await after.cli("role")).startsWith("master"), { what: "it knows" });
  const promoted = performance.now();
  await until(() => load.succeededAt > promoted, { what: "service resumes" });
  expect(performance.now() - promoted).toBeLessThan(soon(1_000));
  const failures = load.reads.length + load.writes.length;
  await load.run(100);
  await load.stop();
  expect(load.reads.length + load.writes.length, "after it resumed").toBe(failures);
  expect(load.states.at(-1) ?? "closed").toBe("closed");
});
