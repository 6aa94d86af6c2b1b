// Servers of a real cluster that freeze, hand over or die while they are in use.
import { performance } from "node:perf_hooks";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import { slotOf } from "../../../src/backends/kv/cluster/slots.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { BackendError, CircuitOpenError } from "../../../src/core/errors.ts";
import { sampleEntry } from "../../../src/testing/contract/sample.ts";
import { XCache } from "../../../src/xcache.ts";
import { type Seat, seats } from "../../support/kv/cluster-layout.ts";
import { Load } from "../../support/load.ts";
import { soon } from "../../support/pace.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

const OPERATION_TIMEOUT_MS = 500;

let cluster: RedisCluster;
let client: KvBackend;
/** A client that waits out the pause of a server handing over to its replica. */
let patient: KvBackend;

beforeAll(async () => {
  // A failing server must not make the others refuse their own keys, and replicas must be ready at once.
  // No replica takes over from a master that is only frozen, however long the test takes on a busy machine.
  const args = ["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"];
  args.push("--cluster-replica-no-failover", "yes");
  cluster = await startCluster({ redis: { args } });
  client = await connectedClient(OPERATION_TIMEOUT_MS);
  patient = await connectedClient(10_000);
});
afterAll(async () => {
  await client?.disconnect();
  await patient?.disconnect();
  await cluster?.stop();
});

async function connectedClient(operationTimeoutMs: number): Promise<KvBackend> {
  const backend = new KvBackend({ kvUrl: cluster.url });
  backend.open({
    clock: systemClock,
    operationTimeoutMs,
    connectTimeoutMs: 5_000,
    poolSize: 1,
    report: () => {},
    evicted: () => {},
    onServer: async () => {},
  });
  await backend.connect();
  return backend;
}

const keys = Array.from({ length: 60 }, (_, at) => `failing:${at}`);
const entry = (key: string) => ({ key, record: sampleEntry(key), lifetimeMs: 60_000 });

interface Place {
  readonly master: Seat;
  readonly replica: Seat;
  /** On this server, and not. */
  readonly ours: readonly string[];
  readonly others: readonly string[];
}

async function placeOf(key: string): Promise<Place> {
  return until(
    async () => {
      const all = await seats(cluster);
      const master = all.find((seat) => seat.holds(slotOf(key)));
      const replica = all.find(({ masterId }) => masterId === master?.id);
      if (master === undefined || replica === undefined) return undefined;
      const isOurs = (each: string) => master.holds(slotOf(each));
      const others = keys.filter((each) => !isOurs(each));
      return { master, replica, ours: keys.filter(isOurs), others };
    },
    { what: `${key} has a master and that a replica` },
  );
}

async function timed(work: Promise<unknown>): Promise<{ readonly tookMs: number; readonly error: unknown }> {
  const began = performance.now();
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return { tookMs: performance.now() - began, error };
}

test("a frozen master delays its own keys by at most operation_timeout, other keys not at all, and is used again once it runs", async () => {
  const { master, ours, others } = await placeOf(keys[0]!);
  await client.writeMany(keys.map(entry));
  master.server.freeze();
  try {
    const frozen = Promise.all(ours.map((key) => timed(client.read(key))));
    const slowest: number[] = [];
    for (let round = 0; round < 20; round++) {
      const { tookMs, error } = await timed(client.readMany(others));
      expect(error).toBeUndefined();
      slowest.push(tookMs);
      await client.writeMany(others.map(entry));
    }
    for (const { tookMs, error } of await frozen) {
      expect(error).toBeInstanceOf(BackendError);
      expect(tookMs).toBeLessThan(OPERATION_TIMEOUT_MS + soon(150));
    }
    // The connection was dropped: the next call waits for a new one, for at most as long.
    const again = await timed(client.read(ours[0]!));
    expect(again.error).toBeInstanceOf(BackendError);
    expect(again.tookMs).toBeLessThan(OPERATION_TIMEOUT_MS + soon(150));
    expect(slowest.sort((one, other) => one - other)[10]).toBeLessThan(soon(50));
  } finally {
    master.server.thaw();
  }
  await until(async () => (await client.read(ours[0]!)) !== undefined, { what: "the server is used again" });
});

test("a frozen master does not open the circuit of the others, and calls soon stop waiting for it", async () => {
  const cache = new XCache({
    kvUrl: cluster.url,
    keyPrefix: "part",
    operationTimeout: OPERATION_TIMEOUT_MS / 1_000,
    circuitBreaker: { failureThreshold: 3, resetTimeout: 60 },
  });
  try {
    const { master } = await placeOf(`part:${keys[0]}`);
    const [ours, others] = [true, false].map((isOurs) =>
      keys.filter((key) => master.holds(slotOf(`part:${key}`)) === isOurs),
    ) as [string[], string[]];
    // The deadlines are short for what comes next, not for this.
    await until(() => cache.setMany(Object.fromEntries(keys.map((key) => [key, key]))).then(() => true), {
      what: "everything is stored",
    });
    await until(async () => (await cache.getMany(keys)).size === keys.length, { what: "everything is read" });
    master.server.freeze();
    try {
      // Many in a row, so that the circuit would open if they counted.
      for (const { error } of await Promise.all(ours.map((key) => timed(cache.get(key)))))
        expect(error).toBeInstanceOf(BackendError);
      await until(
        async () => {
          const { tookMs, error } = await timed(cache.get(ours[0]!));
          expect(error).toBeInstanceOf(BackendError);
          expect(error).not.toBeInstanceOf(CircuitOpenError);
          return tookMs < soon(20);
        },
        { what: "the frozen server is not waited for" },
      );
      // A health check must not open it either.
      for (let asked = 0; asked < 5; asked++) expect(await cache.health()).toBe(false);
      expect(cache.getComprehensiveMetrics().circuitBreakerOpen).toBe(false);
      expect((await cache.getMany(others)).size).toBe(others.length);
    } finally {
      master.server.thaw();
    }
    await until(
      () =>
        cache.get(ours[0]!).then(
          (value) => value === ours[0],
          () => undefined,
        ),
      {
        what: "the server is used again",
      },
    );
  } finally {
    await cache.disconnect();
  }
});

test("connections closed by the servers fail only the writes in flight", async () => {
  // On a busy machine a connection may be closed again before it is ready: the deadline is not what is tested.
  const cache = new XCache({ kvUrl: cluster.url, keyPrefix: "ended", operationTimeout: 10 });
  const load = new Load(cache);
  await load.start();
  for (let kills = 0; kills < 4; kills++) {
    await load.run(60);
    for (const { server, masterId } of await seats(cluster))
      if (masterId === undefined) await server.cli("client", "kill", "type", "normal", "skipme", "yes");
  }
  await load.run(100);
  await load.stop();
  await cache.disconnect();
  expect(load.reads).toEqual([]);
  expect(load.writes.length).toBeLessThanOrEqual(12 * soon(3));
  expect(load.states).toEqual([]);
});

test("a handover to a replica causes no failed call", async () => {
  const { replica, ours } = await placeOf(keys[0]!);
  const failures: unknown[] = [];
  let isDone = false;
  let rounds = 0;
  const work = async (key: string) => {
    while (!isDone) {
      const item = entry(key);
      try {
        await patient.write(item);
        expect((await patient.read(key))?.version).toBe(item.record.version);
        rounds++;
      } catch (error) {
        failures.push(error);
      }
    }
  };
  const working = Promise.all(ours.slice(0, 5).map(work));
  await until(() => rounds > 20, { what: "the work goes on" });
  // A replica refuses until it has heard from its master again.
  await until(() => replica.server.cli("CLUSTER", "FAILOVER"), { what: "the replica takes over" });
  await until(async () => (await placeOf(keys[0]!)).master.id === replica.id, { what: "the handover" });
  const soFar = rounds;
  await until(() => rounds > soFar + 50, { what: "the work goes on after the handover" });
  isDone = true;
  await working;
  expect(failures).toEqual([]);
});

test("a killed master is replaced by its replica; meanwhile every call ends in time and other keys are served", async () => {
  const { master, replica, ours, others } = await placeOf(keys[0]!);
  // The deadlines are short for what comes next, not for this.
  await until(() => client.writeMany(keys.map(entry)).then(() => true), { what: "everything is stored" });
  const epoch = await until(() => client.push.epoch(ours[0]!) || undefined, { what: "pushes are trusted" });
  await replica.server.cli("CONFIG", "SET", "cluster-replica-no-failover", "no");
  const changes = new Set<string | undefined>();
  client.push.onChange((key) => changes.add(key));
  await master.server.kill();
  await until(() => client.push.epoch(ours[0]!) !== epoch, {
    what: "nothing kept is trusted",
    timeoutMs: 1_000,
  });
  expect(changes.has(undefined)).toBe(true);
  const meanwhile: { readonly tookMs: number; readonly error: unknown }[] = [];
  await until(
    async () => {
      const other = timed(client.readMany(others));
      const own = await timed(client.write(entry(ours[0]!)));
      meanwhile.push(await other);
      expect(own.tookMs).toBeLessThan(OPERATION_TIMEOUT_MS + soon(150));
      return own.error === undefined;
    },
    { what: "the replica serves its keys, and no call takes too long" },
  );
  expect(meanwhile.filter(({ error }) => error !== undefined)).toEqual([]);
  const facts = await seats(cluster, replica.server);
  expect(facts.find(({ id }) => id === replica.id)?.masterId).toBeUndefined();
  await client.writeMany(ours.map(entry));
  expect((await client.readMany(ours)).every((record) => record !== undefined)).toBe(true);
  await until(() => client.push.epoch(ours[0]!) !== 0, { what: "pushes are trusted again" });
});
