// ioredis 5 without a cache around it: text in, text out, no ttl, no serialization.
import { Redis } from "ioredis";

export async function open({ url }) {
  const client = new Redis(url);
  await client.ping();
  return {
    write: (value) => JSON.stringify(value),
    sizeOf: (text) => text.length,
    get: (key) => client.get(key),
    set: (key, text) => client.set(key, text),
    getMany: (keys) => client.mget(keys),
  };
}
