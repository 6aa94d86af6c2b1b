// Starts a real Redis master with a replica, watched by three sentinels that fail over within a second or two.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { binaryOf } from "./machine.ts";
import { isRedisReady, type RedisServer, startRedis } from "./redis.ts";
import { redisCli } from "./redis-cli.ts";
import { type Place, type ServerProcess, startOnFreePort } from "./server-process.ts";
import { until } from "./until.ts";

const MASTER_NAME = "main";
const SENTINELS = 3;
const QUORUM = 2;

export interface RedisSentinel {
  /** Both data servers; which of them is the master changes. */
  readonly servers: readonly [RedisServer, RedisServer];
  readonly sentinels: readonly ServerProcess[];
  readonly url: string;
  /** The master as the first sentinel that answers sees it. */
  master(): Promise<RedisServer>;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startSentinel(): Promise<RedisSentinel> {
  const started: ServerProcess[] = [];
  const keep = <T extends ServerProcess>(server: T): T => {
    started.push(server);
    return server;
  };
  const stop = async () => {
    await Promise.all(started.map((server) => server.stop()));
  };
  try {
    const first = keep(await startRedis());
    // Without the delay a diskless replication waits five seconds for more replicas.
    await first.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0");
    const second = keep(await startRedis({ args: ["--replicaof", "127.0.0.1", String(first.port)] }));
    await until(async () => (await second.cli("INFO", "replication")).includes("master_link_status:up"), {
      what: "the replica follows the master",
    });
    const sentinels: ServerProcess[] = [];
    for (let i = 0; i < SENTINELS; i++) sentinels.push(keep(await startOneSentinel(first.port)));
    await Promise.all(
      sentinels.map(({ port }) =>
        until(() => knowsEverybody(port), { what: "the sentinel knows everybody" }),
      ),
    );
    const servers = [first, second] as const;
    const addresses = sentinels.map(({ port }) => `127.0.0.1:${port}`);
    return {
      servers,
      sentinels,
      url: `redis+sentinel://${addresses.join(",")}/${MASTER_NAME}`,
      master: () => findMaster(servers, sentinels),
      stop,
      [Symbol.asyncDispose]: stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startOneSentinel(masterPort: number): Promise<ServerProcess> {
  return startOnFreePort("sentinel", (place: Place) => {
    // A sentinel rewrites this file itself.
    const file = join(place.folder, "sentinel.conf");
    const lines = [
      `port ${place.port}`,
      "bind 127.0.0.1",
      `dir ${place.folder}`,
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${masterPort} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} 500`,
      `sentinel failover-timeout ${MASTER_NAME} 3000`,
      `sentinel parallel-syncs ${MASTER_NAME} 1`,
    ];
    writeFileSync(file, `${lines.join("\n")}\n`);
    return {
      binary: binaryOf("redis-server"),
      args: [file, "--sentinel"],
      isReady: (pid) => isRedisReady({ port: place.port }, pid),
    };
  });
}

async function knowsEverybody(sentinelPort: number): Promise<boolean> {
  const facts = (await redisCli(sentinelPort, {}, ["SENTINEL", "MASTER", MASTER_NAME])).split("\n");
  const fact = (name: string) => Number(facts[facts.indexOf(name) + 1]);
  return fact("num-other-sentinels") === SENTINELS - 1 && fact("num-slaves") === 1;
}

async function findMaster(
  servers: readonly RedisServer[],
  sentinels: readonly ServerProcess[],
): Promise<RedisServer> {
  const ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME];
  const answer = await Promise.any(sentinels.map(({ port }) => redisCli(port, {}, ask)));
  const port = Number(answer.split("\n")[1]);
  const master = servers.find((server) => server.port === port);
  if (master === undefined) throw new Error(`The sentinels name a master that is not ours: ${answer}`);
  return master;
}
