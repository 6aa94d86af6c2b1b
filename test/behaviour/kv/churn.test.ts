// Completed calls leave nothing behind: no promise, load, key, near copy, timer, listener or connection, and no keys on
// the server.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { type EventEmitter, getEventListeners } from "node:events";
import type { Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { waitingTimers } from "../../../scripts/churn/timers.mjs";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { LoadContext } from "../../../src/core/options.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import { XCache } from "../../../src/xcache.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const CALLS = 1_000;
/** Long keys, so that leaked ones show in the heap: one per call adds up to four megabytes. */
const KEY_LENGTH = 4_000;
const MOST_GROWTH_BYTES = 1_500_000;
/** Changes that a process remembers, in case a server without them takes over. */
const REMEMBERED = 50_000;

/** A key that shares its characters with no other string. */
const longKey = (name: string): string => Buffer.alloc(KEY_LENGTH, `${name};`).toString("latin1");

let server: RedisServer;
let caches: XCache[] = [];
let prefixes = 0;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(() => {
  prefixes++;
});
afterEach(async () => {
  for (const cache of caches) await cache.disconnect();
  caches = [];
});

function open(config: CacheConfig = {}): XCache {
  const keyPrefix = `churn-${prefixes}`;
  const circuitBreaker = { failureThreshold: 1_000_000, resetTimeout: 0.1 };
  const cache = new XCache({ kvUrl: server.url, keyPrefix, operationTimeout: 10, circuitBreaker, ...config });
  caches.push(cache);
  return cache;
}

/** Runs the call for each number at once, a few hundred at a time. */
async function each(count: number, call: (at: number) => unknown): Promise<void> {
  for (let from = 0; from < count; from += 250) {
    await Promise.all(Array.from({ length: Math.min(250, count - from) }, (_, at) => call(from + at)));
  }
}

/** Collects garbage. Targets of weak references survive the turn in which these were read, hence the rounds. */
async function collectAll(): Promise<void> {
  for (let round = 0; round < 4; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collect();
  }
}

async function heapBytes(): Promise<number> {
  await collectAll();
  return process.memoryUsage().heapUsed;
}

/** The sockets that this process has opened since and not closed. */
class OpenSockets implements Disposable {
  readonly open = new Set<Socket>();

  constructor() {
    subscribe("net.client.socket", this.#opened);
  }

  [Symbol.dispose](): void {
    unsubscribe("net.client.socket", this.#opened);
  }

  readonly #opened = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    this.open.add(socket);
    socket.once("close", () => this.open.delete(socket));
  };
}

const listenersOf = (emitter: EventEmitter): number =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);

/** Counts the active push listeners; call it before the first one subscribes. */
function pushListenersOf({ push }: KvBackend): () => number {
  let count = 0;
  const { onChange } = push;
  const counted: typeof onChange = (listener) => {
    count++;
    const stop = onChange(listener);
    return () => {
      count--;
      stop();
    };
  };
  Object.assign(push, { onChange: counted });
  return () => count;
}

/** How many of these are still reachable. */
async function alive(references: readonly WeakRef<object>[]): Promise<number> {
  await collectAll();
  return references.filter((reference) => reference.deref() !== undefined).length;
}

/** How much the heap has grown after the second of two equal runs. */
async function growthOf(run: (round: number) => Promise<void>): Promise<number> {
  await run(0);
  const before = await heapBytes();
  await run(1);
  return (await heapBytes()) - before;
}

/** Makes as many changes as are remembered, so that all earlier ones are forgotten. */
async function makeOnlyNewChanges(cache: XCache): Promise<void> {
  const keys = Array.from({ length: 1_000 }, (_, at) => `short-${at}`);
  for (let changes = 0; changes < REMEMBERED; changes += keys.length) await cache.delete(keys);
}

describe.each([false, true])("with the near tier %s", (near) => {
  const nearCache = near && { maxEntries: 100 };

  it("completed calls retain neither their promises nor their loads", async () => {
    const [cache, other] = [open({ nearCache }), open({ nearCache })];
    const references: WeakRef<object>[] = [];
    const watched = <T extends object>(something: T): T => {
      references.push(new WeakRef(something));
      return something;
    };
    await each(CALLS, async (at) => {
      // Several callers on a key, of both processes: some load, some join, some wait for the other's lease.
      const key = `k${at % 100}`;
      const load = watched(async () => ({ at }));
      await watched((at % 2 === 0 ? cache : other).getOrSet(key, load, { ttl: 60, tags: [`t${at % 10}`] }));
      await watched(cache.get(`k${at}`));
      await watched(cache.getMany([key, `k${at}`]));
      await watched(other.delete(key));
    });
    expect(references).toHaveLength(CALLS * 5);
    expect(await alive(references)).toBeLessThan(10);
  });

  it("reads of ever new keys, missing or present, leave nothing in the heap", async () => {
    const cache = open({ nearCache });
    const other = open({ nearCache });
    const growth = await growthOf(async (round) => {
      await each(CALLS, async (at) => {
        const key = longKey(`${round}-${at}`);
        await cache.get(key);
        // One of them loads, the other waits for it.
        await Promise.all([cache, other].map((by) => by.getOrSet(key, () => at, { ttl: 60 })));
        await other.getMany([key, longKey(`${round}-${at}-missing`)]);
      });
    });
    expect(growth).toBeLessThan(MOST_GROWTH_BYTES);
  });

  it("changes are remembered up to a bound, and their keys forgotten beyond it", async () => {
    const cache = open({ nearCache });
    await makeOnlyNewChanges(cache);
    const before = await heapBytes();
    await each(CALLS, (at) => cache.set(longKey(`set-${at}`), at, { ttl: 60 }));
    await each(CALLS, (at) => cache.delete(longKey(`set-${at}`)));
    await each(100, (at) => cache.invalidateTags(longKey(`tag-${at}`)));
    await makeOnlyNewChanges(cache);
    expect((await heapBytes()) - before).toBeLessThan(MOST_GROWTH_BYTES);
  });
});

it("the near tier stays within its entry limit", async () => {
  const cache = open({ nearCache: { maxEntries: 100, values: "shared" } });
  await each(CALLS, (at) => cache.set(`k${at}`, { at }, { ttl: 60 }));
  const kept: WeakRef<object>[] = [];
  await each(CALLS, async (at) => {
    kept.push(new WeakRef((await cache.get<object>(`k${at}`)) ?? {}));
  });
  expect(await alive(kept)).toBeGreaterThan(50);
  expect(await alive(kept)).toBeLessThanOrEqual(101);
});

it("undelivered invalidations are released once they are delivered", async () => {
  const cache = open({ operationTimeout: 0.5 });
  await makeOnlyNewChanges(cache);
  const before = await heapBytes();
  server.freeze();
  const deletes = Array.from({ length: CALLS }, (_, at) => cache.delete(longKey(`${at}`)));
  const outcomes = await Promise.allSettled(deletes);
  expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(CALLS);
  server.thaw();
  await until(async () => (await cache.get("k")) === undefined, { what: "the server is back" });
  // Nothing of them is served before it is delivered.
  for (let at = 0; at < CALLS; at++) expect(await cache.get(longKey(`${at}`))).toBeUndefined();
  await makeOnlyNewChanges(cache);
  deletes.length = 0;
  outcomes.length = 0;
  expect((await heapBytes()) - before).toBeLessThan(MOST_GROWTH_BYTES);
});

it("the numbers of connections and timers do not grow", async () => {
  const cache = open({ nearCache: true });
  const clients = async (): Promise<number> =>
    (await server.cli("CLIENT", "LIST")).split("\n").filter((line) => line.includes("name=xcache")).length;
  await cache.get("k");
  const [before, timersBefore] = [await clients(), waitingTimers()];
  await each(CALLS, (at) => cache.set(`k${at}`, at, { ttl: 60 }));
  for (let round = 0; round < 20; round++) {
    for await (const _ of cache.keys()) break;
    await cache.getStats();
    expect(await cache.health()).toBe(true);
  }
  await until(async () => (await clients()) === before, { what: "connections for scans are closed" });
  // One timer per kind of wait, however many calls are waiting.
  expect(waitingTimers()).toBeLessThan(timersBefore + 10);
});

it("the number of listeners does not grow: on sockets, on signals, on the process and for pushes", async () => {
  const backend = new KvBackend({ kvUrl: server.url });
  const pushListeners = pushListenersOf(backend);
  using sockets = new OpenSockets();
  const [cache, other] = [open({ backend, nearCache: true }), open({ nearCache: true })];
  const stop = new AbortController();
  const signals = new Set<AbortSignal>([stop.signal]);
  const listeners = (): number =>
    [process, ...sockets.open].reduce((sum, emitter) => sum + listenersOf(emitter), 0) +
    [...signals].reduce((sum, signal) => sum + getEventListeners(signal, "abort").length, 0);
  const churn = async (): Promise<void> => {
    await cache.clear();
    await each(250, async (at) => {
      // One of them loads, the other listens for the end of it.
      const load = ({ signal }: LoadContext<number>): number => {
        signals.add(signal);
        return at;
      };
      await Promise.all([cache, other].map((by) => by.getOrSet(`k${at}`, load, { ttl: 60, tags: ["t"] })));
      await cache.get(`k${at}`);
    });
    for (let round = 0; round < 10; round++) {
      for await (const _ of cache.keys("*", { signal: stop.signal })) break;
      await cache.invalidatePattern("none", { signal: stop.signal });
      await cache.connect();
      await cache.health();
      await cache.namespace(`n${round % 2}`).get("k");
      const another = open({ backend, nearCache: true, keyPrefix: `another-${round}` });
      await another.get("k");
      await another.disconnect();
    }
  };
  await churn();
  await until(() => sockets.open.size === 2, { what: "connections for scans are closed" });
  const before = listeners();
  await churn();
  await until(() => sockets.open.size === 2, { what: "connections for scans are closed" });
  expect(listeners()).toBeLessThanOrEqual(before);
  expect(pushListeners()).toBe(1);
});

it("the server holds the live entries and the stamps, nothing else", async () => {
  const cache = open();
  const other = open({ nearCache: true });
  await server.cli("FLUSHALL");
  const random = seededRandom(1);
  const below = (limit: number): number => Math.floor(random() * limit);
  const tags = 20;
  await each(CALLS * 4, async () => {
    const [by, key] = [below(2) === 0 ? cache : other, `k${below(500)}`];
    const options = { ttl: 60, tags: [`t${below(tags)}`] };
    const chance = random();
    if (chance < 0.3) await by.get(key);
    else if (chance < 0.6) await by.getOrSet(key, () => "loaded", options);
    else if (chance < 0.8) await by.set(key, "set", options);
    else if (chance < 0.95) await by.delete(key);
    else await by.invalidateTags(`t${below(tags)}`);
  });
  // Invalidated entries are removed when they are read.
  await cache.getMany(Array.from({ length: 500 }, (_, at) => `k${at}`));
  const live: string[] = [];
  for await (const key of cache.keys()) live.push(`churn-${prefixes}:${key}`);
  expect(live.length).toBeGreaterThan(100);
  const entries = await until(
    async () => {
      const keys = (await server.cli("KEYS", `churn-${prefixes}:*`)).split("\n");
      return keys.length === live.length ? keys : undefined;
    },
    { what: "as many entries as are live" },
  );
  expect(entries.sort()).toEqual(live.sort());
  const own = Number(await server.cli("DBSIZE")) - entries.length;
  // One stamp per tag, at most one for each of the 64 tag groups, the namespace's, and the record about the server.
  expect(own).toBeLessThanOrEqual(tags + 64 + 2);
});
