// async-cache-dedupe on Redis; a getOrSet is a call of the function it wraps.
import { createCache } from "async-cache-dedupe";
import { Redis } from "ioredis";

export async function open({ url, load, ttl, tagged }) {
  const invalidation = tagged && { referencesTTL: ttl };
  const cache = createCache({
    ttl,
    storage: { type: "redis", options: { client: new Redis(url), invalidation } },
  });
  cache.define("read", load);
  const storageKey = (key) => `read~${key}`;
  return {
    get: (key) => cache.get("read", storageKey(key)),
    set: (key, value, tags) => cache.set("read", storageKey(key), value, ttl, tags),
    getOrSet: (key) => cache.read(key),
    invalidateTags: (tags) => cache.invalidateAll(tags),
  };
}
