// The entries that clear() invalidates on a real server are removed in the background, and no others.
import { describe, expect, it } from "vitest";
import { redisCaches } from "../../support/redis-caches.ts";
import { until } from "../../support/until.ts";

const caches = redisCaches({ connectTimeout: 5, operationTimeout: 5 });

const REMOVED = { what: "dead entries are removed" };

/** Entries that the server holds under a namespace, live or dead. */
async function entries(path = ""): Promise<string[]> {
  const listed = await caches.server.cli("--scan", "--pattern", `${caches.prefix}${path}:*`);
  return listed
    .split("\n")
    .filter((line) => line !== "")
    .sort();
}

describe("after clear()", () => {
  it("dead entries are removed from the server without being read, in child namespaces too; new ones stay", async () => {
    const cache = caches.open();
    const child = cache.namespace("child");
    const old = Array.from({ length: 300 }, (_, at) => [`old ${at}`, at] as const);
    await cache.setMany(old);
    await child.setMany(old);
    await cache.clear();
    await cache.set("new", 1);
    await child.set("new", 2);
    await until(
      async () => (await entries()).length === 1 && (await entries("/child")).length === 1,
      REMOVED,
    );
    expect(await entries()).toEqual([`${caches.prefix}:new`]);
    expect([await cache.get("new"), await child.get("new")]).toEqual([1, 2]);
  });

  it("of a child namespace, the entries of its parent and sibling stay", async () => {
    const cache = caches.open();
    const [child, sibling] = [cache.namespace("child"), cache.namespace("sibling")];
    for (const one of [cache, child, sibling]) await one.set("k", 1);
    await child.clear();
    await until(async () => (await entries("/child")).length === 0, REMOVED);
    expect([await cache.get("k"), await child.get("k"), await sibling.get("k")]).toEqual([1, undefined, 1]);
    expect([await entries(), await entries("/sibling")].flat()).toHaveLength(2);
  });

  it("a second clear() during the cleanup of the first is cleaned up too", async () => {
    const cache = caches.open();
    await cache.set("first", 1);
    await cache.clear();
    await cache.set("second", 2);
    await cache.clear();
    await until(async () => (await entries()).length === 0, REMOVED);
  });
});
