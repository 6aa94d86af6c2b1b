// keyv on @keyv/redis, which talks through @redis/client.
import { createKeyv } from "@keyv/redis";

export async function open({ url, ttl }) {
  const keyv = createKeyv(url);
  return {
    get: (key) => keyv.get(key),
    set: (key, value) => keyv.set(key, value, ttl * 1000),
    getMany: (keys) => keyv.getMany(keys),
  };
}
