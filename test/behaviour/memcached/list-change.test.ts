// The list of servers changes: the namespace is new, and nothing old comes back with an old list.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import { XCache } from "../../../src/xcache.ts";
import {
  type MemcachedRing,
  type MemcachedServer,
  startMemcachedRing,
  urlOf,
} from "../../support/memcached.ts";

let ring: MemcachedRing;
beforeAll(async () => {
  ring = await startMemcachedRing(3);
});
afterAll(() => ring.stop());

let tests = 0;
const caches: XCache[] = [];
afterEach(async () => {
  for (const cache of caches.splice(0)) await cache.disconnect();
});

/** As a process started with this list would have it. */
function open(servers: readonly MemcachedServer[], keyPrefix = `list-${tests}`): XCache {
  const cache = new XCache({
    keyPrefix,
    defaultTtl: 3_600,
    backend: new MemcachedBackend({ kvUrl: urlOf(servers) }),
  });
  caches.push(cache);
  return cache;
}

const names = Array.from({ length: 40 }, (_, at) => `key-${at}`);

async function fill(cache: XCache, value: string): Promise<void> {
  await cache.setMany(names.map((name) => [name, value] as const));
  expect((await cache.getMany(names)).size).toBe(names.length);
}

async function end(cache: XCache): Promise<void> {
  await cache.disconnect();
}

describe("another list of servers", () => {
  it("in another order is the same list", async () => {
    tests++;
    const first = open(ring.servers);
    await fill(first, "old");
    const second = open(ring.servers.toReversed());
    expect((await second.getMany(names)).size).toBe(names.length);
    await second.delete(names[0] ?? "");
    expect(await first.get(names[0] ?? "")).toBeUndefined();
    expect(await first.get(names[1] ?? "")).toBe("old");
  });

  it("finds nothing of the previous one", async () => {
    tests++;
    const first = open(ring.servers);
    await fill(first, "old");
    await end(first);
    for (const servers of [ring.servers.slice(0, 2), ring.servers.slice(1), ring.servers.slice(0, 1)]) {
      expect((await open(servers).getMany(names)).size).toBe(0);
    }
  });

  it.each([0, 1, 2])("that removes server %i and adds it back revives nothing", async (left) => {
    tests++;
    const whole = open(ring.servers);
    await fill(whole, "old");
    await end(whole);
    const fewer = open(ring.servers.filter((_, at) => at !== left));
    // Its invalidations apply to every process, as far as it knows.
    expect(await fewer.delete(names)).toBe(0);
    await end(fewer);
    const again = open(ring.servers);
    expect((await again.getMany(names)).size).toBe(0);
    await fill(again, "new");
    expect(await again.get(names[0] ?? "")).toBe("new");
  });

  it("is noticed even if a long prefix makes the keys of notes too long to be spelled out", async () => {
    const prefix = "p".repeat(200);
    const whole = open(ring.servers, prefix);
    await fill(whole, "old");
    await end(whole);
    const fewer = open(ring.servers.slice(0, 2), prefix);
    await fewer.delete(names);
    await end(fewer);
    expect((await open(ring.servers, prefix).getMany(names)).size).toBe(0);
  });

  it("is noticed in each namespace separately, and an unchanged one keeps its entries", async () => {
    tests++;
    const [mine, other] = [open(ring.servers, "mine"), open(ring.servers, "other")];
    await fill(mine, "mine");
    await fill(other, "other");
    await end(mine);
    await end(other);
    const fewer = open(ring.servers.slice(0, 2), "mine");
    await fewer.set("k", 1);
    await end(fewer);
    expect((await open(ring.servers, "mine").getMany(names)).size).toBe(0);
    expect((await open(ring.servers, "other").getMany(names)).size).toBe(names.length);
  });

  it("that has not changed finds in a new process everything that the previous one stored", async () => {
    tests++;
    const running = open(ring.servers);
    await fill(running, "old");
    const before = (await running.getMany(names)).size;
    await end(running);
    const next = open(ring.servers);
    expect((await next.getMany(names)).size).toBe(before);
  });
});
