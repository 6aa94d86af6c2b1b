// cache-manager on @keyv/redis; `near` puts the bounded memory store that its documentation recommends in front.
import { createKeyv as createRedis } from "@keyv/redis";
import { createCache } from "cache-manager";
import { createKeyv as createMemory } from "cacheable";

export async function open({ url, near = false, capacity, load, ttl }) {
  const redis = createRedis(url);
  const stores = near ? [createMemory({ lruSize: capacity, useClone: false }), redis] : [redis];
  const cache = createCache({ stores, ttl: ttl * 1000 });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => cache.set(key, value),
    getMany: (keys) => cache.mget(keys),
    getOrSet: (key) => cache.wrap(key, () => load(key)),
  };
}
