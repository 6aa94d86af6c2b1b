// JSON through a bare socket: the minimal cost of a hit in the store.
import { openClient } from "../../kv/resp-client.mjs";

export async function open({ url }) {
  const client = await openClient(Number(new URL(url).port));
  return {
    set: (key, value) => client.command("SET", key, JSON.stringify(value)),
    getOrSet: async (key) => JSON.parse(await client.get(key)),
  };
}
