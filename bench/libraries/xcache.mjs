// xcache on its memory store.
import { MemoryBackend, XCache } from "../../dist/index.js";

export const open = (options) => openXCache(options);

/** `config` is what a variant of this driver changes. */
export async function openXCache({ capacity, copies, load, ttl }, config = {}) {
  // The peers count entries, not bytes.
  const maxBytes = Number.POSITIVE_INFINITY;
  const backend = new MemoryBackend({ maxEntries: capacity, maxBytes, values: copies ? "copy" : "shared" });
  const cache = new XCache({ backend, defaultTtl: ttl, ...config });
  await cache.connect();
  return {
    cache,
    get: (key) => cache.get(key),
    set: (key, value, tags) => (tags === undefined ? cache.set(key, value) : cache.set(key, value, { tags })),
    getOrSet: (key) => cache.getOrSet(key, () => load(key)),
  };
}
