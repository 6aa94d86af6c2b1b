// Starts a real Redis cluster for a test: masters with replicas, all slots served, every node agreeing.
import { type RedisOptions, type RedisServer, startRedis } from "./redis.ts";
import { redisCli } from "./redis-cli.ts";
import { until } from "./until.ts";

export interface ClusterOptions {
  /** At least 3. Default: 3. */
  readonly masters?: number;
  /** For each master. Default: 1. */
  readonly replicas?: number;
  /** Of every node. */
  readonly redis?: Omit<RedisOptions, "withBus">;
}

export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  readonly url: string;
  /** The nodes that serve slots now, as the first node that answers sees it. */
  masters(): Promise<readonly RedisServer[]>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

// Small, so that a failover takes about a second; large enough for a busy machine not to start one by itself.
const NODE_TIMEOUT_MS = 1_000;

export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicas = 1, redis = {} } = options;
  const args = [
    ...[
      "--cluster-enabled",
      "yes",
      "--cluster-config-file",
      "nodes.conf",
      "--cluster-announce-ip",
      "127.0.0.1",
    ],
    ...["--cluster-node-timeout", String(NODE_TIMEOUT_MS), ...(redis.args ?? [])],
  ];
  const starts = await Promise.allSettled(
    Array.from({ length: masters * (1 + replicas) }, () => startRedis({ ...redis, args, withBus: true })),
  );
  const nodes = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    const failed = starts.find((start) => start.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const addresses = nodes.map((node) => `127.0.0.1:${node.port}`);
    const create = [
      "--cluster",
      "create",
      ...addresses,
      "--cluster-replicas",
      String(replicas),
      "--cluster-yes",
    ];
    await redisCli(nodes[0]!.port, redis, create);
    await Promise.all(
      nodes.map((node) => until(() => isSettled(node, masters, replicas), { what: "cluster is settled" })),
    );
    return {
      nodes,
      url: `redis+cluster://${addresses.join(",")}`,
      masters: () => findMasters(nodes),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function isSettled(node: RedisServer, masters: number, replicas: number): Promise<boolean> {
  if (!(await node.cli("CLUSTER", "INFO")).includes("cluster_state:ok")) return false;
  const lines = (await node.cli("CLUSTER", "NODES")).split("\n");
  const count = (role: string) =>
    lines.filter((line) => line.split(" ")[2]?.split(",").includes(role)).length;
  return count("master") === masters && count("slave") === masters * replicas;
}

async function findMasters(nodes: readonly RedisServer[]): Promise<readonly RedisServer[]> {
  const table = await Promise.any(nodes.map((node) => node.cli("CLUSTER", "NODES")));
  // Each line: id, ip:port@bus, flags, master, ping, pong, epoch, link, then the slots it serves.
  const serving = table
    .split("\n")
    .map((line) => line.split(" "))
    .filter(
      ([, , flags, , , , , , ...slots]) =>
        flags?.includes("master") && !flags.includes("fail") && slots.length > 0,
    )
    .map(([, address]) => Number(/:(\d+)@/.exec(address ?? "")?.[1]));
  return nodes.filter((node) => serving.includes(node.port));
}
