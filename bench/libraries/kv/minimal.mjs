// JSON through a bare socket: what a hit in the store costs when nothing else is done.
import { openClient } from "../../kv/resp-client.mjs";

export async function open({ url }) {
  const client = await openClient(Number(new URL(url).port));
  return {
    set: (key, value) => client.command("SET", key, JSON.stringify(value)),
    getOrSet: async (key) => JSON.parse(await client.get(key)),
  };
}
