// cacheable on @keyv/redis; `near` puts its memory store in front, configured not to clone.
import { createKeyv as createRedis } from "@keyv/redis";
import { Cacheable, createKeyv as createMemory } from "cacheable";

export async function open({ url, near = false, capacity, load, ttl, tagged }) {
  const redis = createRedis(url);
  const stores = near
    ? { primary: createMemory({ lruSize: capacity, useClone: false }), secondary: redis }
    : { primary: redis };
  const cache = new Cacheable({ ...stores, ttl: ttl * 1000, tags: tagged });
  return {
    get: (key) => cache.get(key),
    set: (key, value, tags) => (tags ? cache.set(key, value, { tags }) : cache.set(key, value)),
    getMany: (keys) => cache.getMany(keys),
    getOrSet: (key) => cache.getOrSet(key, () => load(key)),
    invalidateTags: (tags) => cache.tags.invalidateTags(tags),
  };
}
