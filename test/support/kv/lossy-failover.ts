// Servers whose replicas can be cut off and then promoted, without the writes made meanwhile.
import type { RedisServer } from "../redis.ts";
import { redisCli } from "../redis-cli.ts";
import { startCluster } from "../redis-cluster.ts";
import { startSentinel } from "../redis-sentinel.ts";
import { until } from "../until.ts";
import { seats } from "./cluster-layout.ts";

export interface Fleet {
  readonly url: string;
  /** From now on no write reaches a replica; every one before has. */
  cutReplication(): Promise<void>;
  /** Kills every master; resolves when its replica, which lacks writes, has taken over. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

interface Pair {
  readonly master: RedisServer;
  readonly replica: RedisServer;
}

/** Servers report their uptime in whole seconds: after this long, no namespace looks older than its servers. */
const OLD_ENOUGH_SECONDS = 4;

export async function startSentinelFleet(): Promise<Fleet> {
  const sentinel = await startSentinel();
  const [master, replica] = sentinel.servers;
  const tell = (port: number, ...words: string[]): Promise<string> =>
    redisCli(port, {}, ["SENTINEL", ...words]);
  const promote = async (): Promise<void> => {
    await until(() => tell(sentinel.sentinels[0]!.port, "FAILOVER", "main"), { what: "the failover begins" });
    await until(async () => (await sentinel.master()) === replica, {
      what: "the sentinels name the replica",
    });
  };
  // Only the test declares the master dead.
  const patience = ["SET", "main", "down-after-milliseconds", "60000"];
  await Promise.all(sentinel.sentinels.map(({ port }) => tell(port, ...patience)));
  return fleetOf(sentinel, [{ master, replica }], promote);
}

/** All three masters fail at once, so that every key is affected. */
export async function startClusterFleet(): Promise<Fleet> {
  const cluster = await startCluster({ redis: { args: ["--repl-diskless-sync-delay", "0"] } });
  const all = await seats(cluster);
  const pairs = all.flatMap(({ server, masterId }) => {
    const master = all.find(({ id }) => id === masterId)?.server;
    return master === undefined ? [] : [{ master, replica: server }];
  });
  const promote = async ({ replica }: Pair): Promise<void> => {
    await replica.cli("CLUSTER", "FAILOVER", "TAKEOVER");
    await until(async () => (await fact(replica, "role")) === "master", { what: "the replica is a master" });
  };
  return fleetOf(cluster, pairs, promote);
}

async function fleetOf(
  servers: { readonly url: string; stop(): Promise<void> },
  pairs: readonly Pair[],
  promote: (pair: Pair) => Promise<void>,
): Promise<Fleet> {
  await Promise.all(pairs.map(untilOldEnough));
  return {
    url: servers.url,
    cutReplication: async () => {
      await Promise.all(pairs.map(cut));
    },
    failOver: async () => {
      await Promise.all(pairs.map(untilLacking));
      await Promise.all(pairs.map(({ master }) => master.kill()));
      await Promise.all(pairs.map(promote));
    },
    stop: () => servers.stop(),
  };
}

async function fact(server: RedisServer, field: string): Promise<string | undefined> {
  return new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(await server.cli("INFO"))?.[1];
}

async function untilOldEnough({ replica }: Pair): Promise<void> {
  await until(async () => Number(await fact(replica, "uptime_in_seconds")) >= OLD_ENOUGH_SECONDS, {
    what: "the replica has been running for a while",
  });
}

/** Ends the replica's connection; it cannot reconnect, since the master refuses its password. */
async function cut({ master, replica }: Pair): Promise<void> {
  await until(
    async () => {
      const written = await fact(master, "master_repl_offset");
      return (await fact(master, "slave0"))?.includes(`offset=${written},`);
    },
    { what: "the replica has everything" },
  );
  await replica.cli("CONFIG", "SET", "masterauth", "refused");
  await master.cli("CLIENT", "KILL", "TYPE", "replica");
  await until(async () => (await fact(master, "connected_slaves")) === "0", { what: "the master is alone" });
  await until(async () => (await fact(replica, "master_link_status")) === "down", {
    what: "the replica too",
  });
}

async function untilLacking({ master, replica }: Pair): Promise<void> {
  await until(
    async () => {
      const offsets = [await fact(master, "master_repl_offset"), await fact(replica, "slave_repl_offset")];
      return Number(offsets[0]) > Number(offsets[1]);
    },
    { what: "the replica lacks what was written last" },
  );
}
