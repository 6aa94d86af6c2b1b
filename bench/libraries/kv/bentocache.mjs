// bentocache on its Redis driver; `near` puts its memory driver in front, configured not to serialize.
import { BentoCache, bentostore } from "bentocache";
import { memoryDriver } from "bentocache/drivers/memory";
import { redisDriver } from "bentocache/drivers/redis";
import { Redis } from "ioredis";

export async function open({ url, near = false, capacity, load, ttl }) {
  const store = bentostore().useL2Layer(redisDriver({ connection: new Redis(url) }));
  if (near) store.useL1Layer(memoryDriver({ maxItems: capacity, serialize: false }));
  const bento = new BentoCache({ default: "redis", ttl: ttl * 1000, stores: { redis: store } });
  return {
    get: (key) => bento.get({ key }),
    set: (key, value, tags) => bento.set(tags ? { key, value, tags } : { key, value }),
    getOrSet: (key) => bento.getOrSet({ key, factory: () => load(key) }),
    invalidateTags: (tags) => bento.deleteByTag({ tags }),
  };
}
