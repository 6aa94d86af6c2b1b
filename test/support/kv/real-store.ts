// A store for a test that is the same on one server and on a cluster.
import { type RedisServer, startRedis } from "../redis.ts";
import { startCluster } from "../redis-cluster.ts";

export interface RealStore extends AsyncDisposable {
  readonly url: string;
  readonly masters: readonly RedisServer[];
}

export async function oneServer(): Promise<RealStore> {
  const server = await startRedis();
  return { url: server.url, masters: [server], [Symbol.asyncDispose]: () => server.stop() };
}

async function cluster(): Promise<RealStore> {
  const { url, nodes, stop } = await startCluster({ replicas: 0 });
  return { url, masters: nodes, [Symbol.asyncDispose]: stop };
}

/** Each with its name, for titles. */
export const REAL_STORES = [
  ["one server", oneServer],
  ["a cluster", cluster],
] as const;
