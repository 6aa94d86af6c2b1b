// xcache on memcached.
import { MemcachedBackend, XCache } from "../../../dist/index.js";

/** `memcachedUrl`: where `url` is the Redis server of the baseline. */
export async function open({ url, memcachedUrl = url, ttl }) {
  const cache = new XCache({ backend: new MemcachedBackend({ kvUrl: memcachedUrl }), defaultTtl: ttl });
  await cache.connect();
  return {
    get: (key) => cache.get(key),
    set: (key, value) => cache.set(key, value),
  };
}
