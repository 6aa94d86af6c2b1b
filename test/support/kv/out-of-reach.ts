// A server that cannot be reached for a while and loses nothing meanwhile.
import { reservePort } from "../port.ts";
import type { RedisServer } from "../redis.ts";
import { redisCli } from "../redis-cli.ts";

/** The server keeps running elsewhere, and comes back with all its data. */
export async function whileOutOfReach(server: RedisServer, work: () => Promise<void>): Promise<void> {
  const elsewhere = await reservePort();
  const cli = (...args: readonly string[]): Promise<string> => redisCli(elsewhere.port, {}, args);
  await server.cli("config", "set", "port", String(elsewhere.port));
  try {
    await cli("client", "kill", "type", "normal", "skipme", "yes");
    await work();
  } finally {
    await cli("config", "set", "port", String(server.port));
    elsewhere.release();
  }
}
