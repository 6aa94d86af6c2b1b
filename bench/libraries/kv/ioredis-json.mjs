// ioredis 5 without a cache around it, and JSON: what most people write first.
import { Redis } from "ioredis";

export async function open({ url }) {
  const client = new Redis(url);
  await client.ping();
  return {
    set: (key, value) => client.set(key, JSON.stringify(value)),
    getMany: async (keys) => (await client.mget(keys)).map((text) => JSON.parse(text)),
  };
}
