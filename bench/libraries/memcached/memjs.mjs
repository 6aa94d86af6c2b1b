// memjs 1 without a cache around it: text in, bytes out, no decoding.
import { Client } from "memjs";

export async function open({ url, ttl }) {
  const client = Client.create(new URL(url).host);
  return {
    write: (value) => JSON.stringify(value),
    sizeOf: (text) => text.length,
    get: async (key) => (await client.get(key)).value,
    set: (key, text) => client.set(key, text, { expires: ttl }),
  };
}
