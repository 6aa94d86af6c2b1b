// Arguments that the caller changes right after a call: loads, stores and other callers use the original ones.
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { cached } from "../../../src/functions/cached.ts";
import { redisCaches } from "../../support/redis-caches.ts";

const caches = redisCaches({ operationTimeout: 10 });

test("of a cached function", async () => {
  const cache = caches.open();
  const seen: number[] = [];
  const list = cached(
    async ({ page }: { page: number }, tags: string[] = []) => {
      seen.push(page);
      await pause(20);
      return `page ${page} ${tags.join()}`;
    },
    { cache, name: "list", ttl: 60 },
  );
  const query = { page: 1 };
  const tags = ["a"];
  const first = list(query, tags);
  query.page = 2;
  tags.push("b");
  const joiner = list({ page: 1 }, ["a"]);
  expect(await Promise.all([first, joiner])).toEqual(["page 1 a", "page 1 a"]);
  expect(await list({ page: 1 }, ["a"])).toBe("page 1 a");
  expect(seen).toEqual([1]);
  const refreshed = list.refresh(query, tags);
  query.page = 3;
  expect(await refreshed).toBe("page 2 a,b");
  expect(await list({ page: 2 }, ["a", "b"])).toBe("page 2 a,b");
});

test("of getOrSet: one object of options for many calls", async () => {
  const cache = caches.open();
  const options = { ttl: 60, tags: ["one"] };
  const one = cache.getOrSet("one", () => 1, options);
  options.ttl = 600;
  options.tags = ["two"];
  const two = cache.getOrSet("two", () => 2, options);
  options.tags[0] = "none";
  expect(await Promise.all([one, two])).toEqual([1, 2]);
  expect(await cache.tags("one")).toEqual(["one"]);
  expect(await cache.ttl("one")).toBeLessThanOrEqual(60);
  expect(await cache.tags("two")).toEqual(["two"]);
  await cache.invalidateTags("one");
  expect(await cache.get("one")).toBeUndefined();
});

test("of getOrSet: options that cannot be read reject the call", async () => {
  const cache = caches.open();
  await cache.set("key", 1);
  const unreadable = {
    get ttl(): number {
      throw new Error("no ttl");
    },
  };
  await expect(async () => cache.getOrSet("key", () => 2, { ttl: -1 })).rejects.toThrow("ttl");
  const call = cache.getOrSet("key", () => 2, unreadable);
  await expect(call).rejects.toThrow("no ttl");
});

test("an argument that is a class instance is passed as it is", async () => {
  class Request {
    readonly url = "/";
  }
  const cache = caches.open();
  const request = new Request();
  const handle = cached(async (given: Request) => given === request, {
    cache,
    name: "handle",
    key: ({ url }) => url,
  });
  expect(await handle(request)).toBe(true);
});
