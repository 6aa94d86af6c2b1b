// xcache on memcached.
import { MemcachedBackend, XCache } from "../../../dist/index.js";

export async function open({ url, ttl }) {
  const cache = new XCache({ backend: new MemcachedBackend({ kvUrl: url }), defaultTtl: ttl });
  await cache.connect();
  return {
    get: (key) => cache.get(key),
    set: (key, value) => cache.set(key, value),
  };
}
