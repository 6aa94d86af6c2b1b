// layered-loader on its Redis cache; `near` puts its in-memory tier in front.
import { Redis } from "ioredis";
import { Loader, RedisCache } from "layered-loader";

export async function open({ url, near = false, capacity, load, ttl }) {
  const ttlInMsecs = ttl * 1000;
  const loader = new Loader({
    asyncCache: new RedisCache(new Redis(url), { json: true, ttlInMsecs }),
    dataSourceGetOneFn: load,
    // Used by getMany, which no scenario combines with a tier in front.
    cacheKeyFromValueResolver: ({ id }) => String(id),
    ...(near && { inMemoryCache: { cacheType: "lru-map", maxItems: capacity, ttlInMsecs } }),
  });
  return {
    get: (key) => loader.get(key),
    set: (key, value) => loader.forceSetValue(key, value),
    getMany: (keys) => loader.getMany(keys),
    getOrSet: (key) => loader.get(key),
  };
}
