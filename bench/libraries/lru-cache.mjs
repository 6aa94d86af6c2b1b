// lru-cache: synchronous reads and writes, awaited here as in an application whose interface is asynchronous.
import { LRUCache } from "lru-cache";

export async function open({ capacity, load, ttl }) {
  const cache = new LRUCache({ max: capacity, ttl: ttl * 1000, fetchMethod: load });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => {
      cache.set(key, value);
    },
    getOrSet: (key) => cache.fetch(key),
  };
}
