// layered-loader, in-memory tier only; a read tries the synchronous getter first, as its documentation recommends.
import { Loader } from "layered-loader";

export async function open({ capacity, load, ttl }) {
  const loader = new Loader({
    inMemoryCache: { cacheType: "lru-map", maxItems: capacity, ttlInMsecs: ttl * 1000 },
    dataSourceGetOneFn: load,
  });
  return {
    get: (key) => loader.getInMemoryOnly(key) ?? loader.getAsyncOnly(key),
    set: (key, value) => loader.forceSetValue(key, value),
    getOrSet: (key) => loader.get(key),
  };
}
