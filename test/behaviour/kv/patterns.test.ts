// Patterns over keys whose characters consist of several code units: a user-perceived character counts as one.
import { expect, test } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { redisCaches } from "../../support/redis-caches.ts";

const caches = redisCaches({});
const FAMILY = "\u{1F468}\u200d\u{1F469}\u200d\u{1F467}";
const KEYS = ["k:a", `k:${FAMILY}`, "k:\u{1F1E9}\u{1F1EA}", "k:e\u0301", "k:ab", `k:${FAMILY}${FAMILY}`];

test.each(["redis", "memory"])("a question mark matches exactly one of them on %s", async (store) => {
  await using cache = store === "redis" ? caches.open() : new XCache({ kvUrl: "memory://" });
  await cache.setMany(KEYS.map((key) => [key, 1] as const));
  const listed = async (pattern: string): Promise<readonly string[]> => {
    const found: string[] = [];
    for await (const key of cache.keys(pattern)) found.push(key);
    return found.sort();
  };
  expect(await listed("k:?")).toEqual(KEYS.slice(0, 4).sort());
  expect(await listed("k:??")).toEqual(KEYS.slice(4).sort());
  expect(await listed(`k:[${FAMILY}a]`)).toEqual(["k:a", `k:${FAMILY}`].sort());
  expect(await cache.invalidatePattern("?:[^a]")).toBe(3);
  expect(await listed("k:*")).toEqual(["k:a", ...KEYS.slice(4)].sort());
});
