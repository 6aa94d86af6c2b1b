// cacheable on its own memory store, which clones values unless configured not to.
import { Cacheable, createKeyv } from "cacheable";

export async function open({ capacity, copies, load, ttl, tagged }) {
  const primary = createKeyv({ lruSize: capacity, useClone: copies });
  const cache = new Cacheable({ primary, ttl: ttl * 1000, tags: tagged });
  return {
    get: (key) => cache.get(key),
    set: (key, value, tags) => (tags ? cache.set(key, value, { tags }) : cache.set(key, value)),
    getOrSet: (key) => cache.getOrSet(key, () => load(key)),
  };
}
