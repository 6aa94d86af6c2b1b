// bentocache on its memory driver, which serializes unless configured not to.
import { BentoCache, bentostore } from "bentocache";
import { memoryDriver } from "bentocache/drivers/memory";

export async function open({ capacity, copies, load, ttl }) {
  const layer = memoryDriver(copies ? { maxItems: capacity } : { maxItems: capacity, serialize: false });
  const bento = new BentoCache({
    default: "memory",
    ttl: ttl * 1000,
    stores: { memory: bentostore().useL1Layer(layer) },
  });
  return {
    get: (key) => bento.get({ key }),
    set: (key, value, tags) => bento.set(tags ? { key, value, tags } : { key, value }),
    getOrSet: (key) => bento.getOrSet({ key, factory: () => load(key) }),
  };
}
