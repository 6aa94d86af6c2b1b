// cache-manager on its default store, a Keyv on a Map; it serializes unless configured not to, and has no bound.
import { createCache } from "cache-manager";
import { Keyv } from "keyv";

export async function open({ copies, load, ttl }) {
  const keyv = new Keyv();
  if (!copies) {
    keyv.serialize = undefined;
    keyv.deserialize = undefined;
  }
  const cache = createCache({ stores: [keyv], ttl: ttl * 1000 });
  return {
    get: (key) => cache.get(key),
    set: (key, value) => cache.set(key, value),
    getOrSet: (key) => cache.wrap(key, () => load(key)),
  };
}
