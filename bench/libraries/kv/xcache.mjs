// xcache on Redis; `near` puts its in-process tier in front, which returns shared values.
import { XCache } from "../../../dist/index.js";

/** Far more than the entries of any scenario take: only `capacity` bounds the near tier. */
const NEAR_BYTES = 1024 ** 3;

export async function open({ url, near = false, capacity, load, ttl }) {
  const nearCache = near && { maxEntries: capacity, maxBytes: NEAR_BYTES, values: "shared" };
  const cache = new XCache({ kvUrl: url, defaultTtl: ttl, nearCache });
  await cache.connect();
  return {
    get: (key) => cache.get(key),
    set: (key, value, tags) => (tags === undefined ? cache.set(key, value) : cache.set(key, value, { tags })),
    getMany: async (keys) => (await cache.getMany(keys)).values(),
    getOrSet: (key) => cache.getOrSet(key, () => load(key)),
    invalidateTags: (tags) => cache.invalidateTags(tags),
  };
}
