// async-cache-dedupe: a read is a call of the function it wraps.
import { createCache } from "async-cache-dedupe";

export async function open({ capacity, load, ttl, tagged }) {
  const storage = { type: "memory", options: { size: capacity, invalidation: tagged } };
  const cache = createCache({ ttl, storage });
  cache.define("read", load);
  return {
    get: (key) => cache.read(key),
    set: (key, value, tags) => cache.set("read", `read~${key}`, value, ttl, tags),
    getOrSet: (key) => cache.read(key),
  };
}
