// Commands of one tick leave in one write, and a value kept from a reply holds no more memory than its own bytes.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CacheConfig } from "../../../src/config/types.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/index.ts";
import type { XCache } from "../../../src/xcache.ts";
import { commandCounts, countAnew } from "../../support/kv/command-counts.ts";
import { REAL_STORES, type RealStore } from "../../support/kv/real-store.ts";
import { type Sent, WireTap } from "../../support/kv/wire-tap.ts";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const NAMES = Array.from({ length: 100 }, (_, at) => `key-${at}`);
/** A batch of this size is sent before the tick ends, so the server starts on it while the rest are prepared. */
const COMMANDS_AT_ONCE = 32;

let tests = 0;

/** The clock of this cache stands still, so it sends only the commands that the test causes. */
function open(kvUrl: string, config: CacheConfig = {}): XCache {
  const keyPrefix = `batching-${++tests}`;
  return cacheWithClock({ kvUrl, keyPrefix, enableMetrics: false, ...config }, new ManualClock());
}

/** Stores a value for each name and makes the cache fetch the stamp of its namespace. */
async function prepare(cache: XCache): Promise<void> {
  await cache.setMany([...NAMES, "warm"].map((name) => [name, `value of ${name}`] as const));
  expect(await cache.get("warm")).toBe("value of warm");
}

const VALUES = NAMES.map((name) => `value of ${name}`);
const namesOf = (sent: readonly Sent[]): string[] =>
  sent.flatMap(({ commands }) => commands.map(([name = ""]) => name));

describe.each(REAL_STORES)("on %s", (kind, start) => {
  let store: RealStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(() => store[Symbol.asyncDispose]());

  const isCluster = kind === "a cluster";
  const reads = isCluster ? { get: NAMES.length } : { mget: 1 };

  it.each<[string, CacheConfig, (cache: XCache, name: string) => Promise<unknown>]>([
    ["gets", {}, (cache, name) => cache.get(name)],
    ["gets with a near tier", { nearCache: true }, (cache, name) => cache.get(name)],
    ["calls of getOrSet", {}, (cache, name) => cache.getOrSet(name, () => expect.unreachable())],
  ])(`100 %s of one tick are ${isCluster ? "one write to each server" : "one MGET"}`, async (...given) => {
    const [, config, read] = given;
    using wire = new WireTap();
    await using cache = open(store.url, config);
    await prepare(cache);
    await countAnew(store.masters);
    wire.sent.length = 0;
    expect(await Promise.all(NAMES.map((name) => read(cache, name)))).toEqual(VALUES);
    expect(await commandCounts(store.masters)).toEqual(reads);
    expect(wire.sent.map(({ port }) => port).sort()).toEqual(store.masters.map(({ port }) => port).sort());
    expect(namesOf(wire.sent)).toEqual(isCluster ? NAMES.map(() => "GET") : ["MGET"]);
  });

  it("100 sets of one tick are one pipeline to each server: none waits for a reply to another", async () => {
    using wire = new WireTap();
    await using cache = open(store.url);
    await prepare(cache);
    await countAnew(store.masters);
    wire.sent.length = 0;
    const stored = Promise.all(NAMES.map((name) => cache.set(name, "new")));
    // No reply can have arrived before the tick is over.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const sent = [...wire.sent];
    expect(namesOf(sent)).toEqual(NAMES.map(() => "SET"));
    for (const { port } of store.masters) {
      const writes = sent.filter((each) => each.port === port);
      expect(writes.length).toBe(Math.ceil(namesOf(writes).length / COMMANDS_AT_ONCE));
    }
    await stored;
    expect(wire.sent).toEqual(sent);
    expect(await commandCounts(store.masters)).toEqual({ set: NAMES.length });
    expect(new Set((await cache.getMany(NAMES)).values())).toEqual(new Set(["new"]));
  });
});

describe("1,000 small Buffers that are held", () => {
  const SIZE = 64;
  const MANY = Array.from({ length: 1_000 }, (_, at) => `bytes-${at}`);
  const content = (name: string): Buffer => Buffer.alloc(SIZE, name);

  let store: RealStore;
  beforeAll(async () => {
    store = await REAL_STORES[0][1]();
  });
  afterAll(() => store[Symbol.asyncDispose]());

  /** The bytes of all reachable buffers outside the heap. */
  async function bufferBytes(): Promise<number> {
    for (let round = 0; round < 4; round++) {
      await new Promise((resolve) => setImmediate(resolve));
      collect();
    }
    return process.memoryUsage().arrayBuffers;
  }

  const reads: readonly ((cache: XCache, name: string) => Promise<unknown>)[] = [
    (cache, name) => cache.get(name),
    async (cache, name) => (await cache.getMany([name, "absent"])).get(name),
    (cache, name) => cache.getOrSet(name, () => expect.unreachable()),
  ];

  it.each<[string, CacheConfig]>([
    ["by their callers", {}],
    ["by the near tier and, as copies, by its callers", { nearCache: true }],
    ["by the near tier and its callers", { nearCache: { values: "shared" } }],
  ])("%s retain no more memory than their own bytes", async (_, config) => {
    await using cache = open(store.url, config);
    await cache.setMany(MANY.map((name) => [name, content(name)] as const));
    const before = await bufferBytes();
    const held: Buffer[] = [];
    // One by one, so that each arrives in a chunk of its own; the second time the near tier has them.
    for (const name of [...MANY, ...MANY]) {
      const read = reads[held.length % reads.length]!;
      held.push((await read(cache, name)) as Buffer);
    }
    // If they retained their 64 KiB chunks, it would be sixty times as much.
    expect((await bufferBytes()) - before).toBeLessThan(1_000_000);
    const sizes = held.map(({ buffer, byteOffset }) => `${byteOffset} of ${buffer.byteLength}`);
    expect(new Set(sizes)).toEqual(new Set([`0 of ${SIZE}`]));
    expect([...MANY, ...MANY].filter((name, at) => !held[at]!.equals(content(name)))).toEqual([]);
  });
});
