// The store of a run, on real servers, and the faults it can suffer.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { redisCli } from "../support/redis-cli.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { type RedisSentinel, startSentinel } from "../support/redis-sentinel.ts";
import { until } from "../support/until.ts";
import type { FaultKind } from "./history.ts";
import type { FaultStep, StoreKind } from "./plan.ts";

export interface Stage {
  readonly url: string;
  /** Injects the fault, and resolves when the store accepts commands again. */
  inject(fault: FaultStep): Promise<void>;
  /** Brings everything into the state that the next fault needs. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

export function openStage(store: StoreKind): Promise<Stage> {
  if (store === "one") return openOne();
  return store === "sentinel" ? openSentinel() : openCluster();
}

/** Whether acknowledged writes may be silently lost. */
export const mayLose = (store: StoreKind, what: FaultKind): boolean =>
  store !== "one" && (what.startsWith("failover") || what === "restore" || what === "empty");

async function freezeFor(server: RedisServer, ms: number): Promise<void> {
  server.freeze();
  try {
    await pause(ms);
  } finally {
    server.thaw();
  }
}

async function dropClients(server: RedisServer): Promise<void> {
  await server.cli("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

/** Kills and restarts the server, which comes back with its last snapshot, or empty. */
async function crash(server: RedisServer, awayMs: number, keepsSnapshot: boolean): Promise<void> {
  await server.kill();
  if (!keepsSnapshot) rmSync(join(server.folder, "dump.rdb"), { force: true });
  await pause(awayMs);
  await server.start();
}

/** A master dies after its replica was cut off for a while: what it acknowledged meanwhile is lost. */
async function dieUnheard(
  master: RedisServer,
  replica: RedisServer,
  unheardMs: number,
  replaced: () => Promise<unknown>,
): Promise<void> {
  // A login that the master refuses keeps the replica from reconnecting.
  await replica.cli("CONFIG", "SET", "masteruser", "nobody", "masterauth", "nothing");
  await master.cli("CLIENT", "KILL", "TYPE", "replica");
  await pause(unheardMs);
  await master.kill();
  await replaced();
  await replica.cli("CONFIG", "SET", "masteruser", "", "masterauth", "");
}

async function openOne(): Promise<Stage> {
  const server = await startRedis();
  return {
    url: server.url,
    async inject({ what, ms }) {
      if (what === "save") await server.cli("SAVE");
      else if (what === "freeze") await freezeFor(server, ms);
      else if (what === "flush") await server.cli("FLUSHALL");
      else if (what === "drop") await dropClients(server);
      else if (what === "restore" || what === "empty") await crash(server, ms, what === "restore");
      else throw new Error(`One server cannot have a ${what}.`);
    },
    settle: async () => {},
    stop: () => server.stop(),
  };
}

async function openSentinel(): Promise<Stage> {
  const sentinel = await startSentinel();
  try {
    await Promise.all([
      // Sentinels begin no failover for twice this time after the last one.
      ...sentinel.sentinels.map(({ port }) =>
        redisCli(port, {}, ["SENTINEL", "SET", "main", "failover-timeout", "1000"]),
      ),
      ...sentinel.servers.map((server) => server.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0")),
    ]);
  } catch (error) {
    await sentinel.stop();
    throw error;
  }
  return {
    url: sentinel.url,
    inject: (fault) => sentinelFault(sentinel, fault),
    settle: () => replicaFollows(sentinel),
    stop: () => sentinel.stop(),
  };
}

/** The master that all sentinels name: for a while after a failover some still name the former one. */
function agreedMaster({ sentinels, servers }: RedisSentinel): Promise<RedisServer> {
  const question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"];
  return until(
    async () => {
      const answers = await Promise.all(sentinels.map(({ port }) => redisCli(port, {}, question)));
      const named = new Set(answers.map((answer) => Number(answer.split("\n")[1])));
      return named.size === 1 ? servers.find(({ port }) => named.has(port)) : undefined;
    },
    { what: "the sentinels agree on a master" },
  );
}

/** Sentinels delay a failover soon after another, and abandon one on a busy machine; then it is requested again. */
const SUCCESSION_MS = 40_000;
const GIVEN_UP_MS = 5_000;

async function sentinelFault(sentinel: RedisSentinel, { what, ms }: FaultStep): Promise<void> {
  const before = await agreedMaster(sentinel);
  const [first] = sentinel.sentinels;
  const order = () => redisCli(first!.port, {}, ["SENTINEL", "FAILOVER", "main"]);
  const other = () => {
    let orderAt = performance.now() + GIVEN_UP_MS;
    return until(
      async () => {
        const master = await agreedMaster(sentinel);
        if (master !== before && (await master.cli("ROLE")).startsWith("master")) return master;
        if (performance.now() < orderAt) return undefined;
        orderAt = performance.now() + GIVEN_UP_MS;
        await order().catch(() => {});
        return undefined;
      },
      { what: "the other server is the master", timeoutMs: SUCCESSION_MS },
    );
  };
  switch (what) {
    // Shorter than it takes to be considered dead.
    case "freeze":
      return freezeFor(before, Math.min(ms, 350));
    case "flush":
      return void (await before.cli("FLUSHALL"));
    case "drop":
      return dropClients(before);
    case "failover by death":
      return dieUnheard(before, sentinel.servers.find((server) => server !== before)!, ms, other);
    case "failover by freeze":
      before.freeze();
      try {
        await other();
      } finally {
        before.thaw();
      }
      await demote(before, await other());
      return;
    case "failover by order":
      await order();
      await demote(before, await other());
      return;
    default:
      throw new Error(`Servers behind sentinels cannot have a ${what}.`);
  }
}

/** As the sentinels would do, only sooner: they wait ten seconds before reconfiguring a former master. */
async function demote(server: RedisServer, master: RedisServer): Promise<void> {
  await server.cli("REPLICAOF", "127.0.0.1", String(master.port));
  await dropClients(server);
}

/** Starts the other server and makes it follow the master; sentinels would take longer. */
async function replicaFollows(sentinel: RedisSentinel): Promise<void> {
  const master = await agreedMaster(sentinel);
  const replica = sentinel.servers.find((server) => server !== master) as RedisServer;
  if (!isRunning(replica)) await replica.start();
  await until(
    async () => {
      if ((await replica.cli("ROLE")).startsWith("master")) await demote(replica, master);
      await replica.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0");
      if (!/slave0:.*state=online/.test(await master.cli("INFO", "replication"))) return false;
      const facts = await redisCli(sentinel.sentinels[0]!.port, {}, ["SENTINEL", "REPLICAS", "main"]);
      return !/s_down|disconnected/.test(facts);
    },
    { what: "the replica follows the master", timeoutMs: 30_000 },
  );
}

function isRunning(server: RedisServer): boolean {
  try {
    return server.pid > 0;
  } catch {
    return false;
  }
}

async function openCluster(): Promise<Stage> {
  // A failing server must not make the others refuse their own keys, and replicas must be ready at once.
  const args = ["--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0"];
  const cluster = await startCluster({ redis: { args } });
  return {
    url: cluster.url,
    inject: (fault) => clusterFault(cluster, fault),
    settle: () => clusterSettled(cluster),
    stop: () => cluster.stop(),
  };
}

async function clusterFault(cluster: RedisCluster, { what, ms, lot }: FaultStep): Promise<void> {
  const masters = await cluster.masters();
  const chosen = masters[Math.floor(lot * masters.length)] as RedisServer;
  const taken = () =>
    until(
      async () => {
        const now = await cluster.masters();
        return now.length === masters.length && !now.includes(chosen);
      },
      { what: "a replica has taken over" },
    );
  switch (what) {
    case "freeze":
      return freezeFor(chosen, Math.min(ms, 600));
    case "flush":
      await Promise.all(masters.map((master) => master.cli("FLUSHALL")));
      return;
    case "drop":
      await Promise.all(masters.map(dropClients));
      return;
    // Down for less time than it takes to be replaced.
    case "empty":
      return crash(chosen, Math.min(ms, 100), false);
    case "failover by death":
      return dieUnheard(chosen, await replicaOf(cluster, chosen), ms, taken);
    case "failover by freeze":
      chosen.freeze();
      try {
        await taken();
      } finally {
        chosen.thaw();
      }
      return;
    case "failover by order": {
      const replica = await replicaOf(cluster, chosen);
      await until(() => replica.cli("CLUSTER", "FAILOVER"), { what: "the replica takes over" });
      await taken();
      return;
    }
    default:
      throw new Error(`A cluster cannot have a ${what}.`);
  }
}

async function replicaOf(cluster: RedisCluster, master: RedisServer): Promise<RedisServer> {
  const [, ...role] = (await master.cli("ROLE")).split("\n");
  const replica = cluster.nodes.find((node) => role.includes(String(node.port)));
  if (replica === undefined) throw new Error(`The master on port ${master.port} has no replica.`);
  return replica;
}

async function clusterSettled(cluster: RedisCluster): Promise<void> {
  for (const node of cluster.nodes) if (!isRunning(node)) await node.start();
  await until(
    async () => {
      const infos = await Promise.all(cluster.nodes.map((node) => node.cli("CLUSTER", "INFO")));
      if (!infos.every((info) => info.includes("cluster_state:ok"))) return false;
      const masters = await cluster.masters();
      const roles = await Promise.all(cluster.nodes.map((node) => node.cli("INFO", "replication")));
      const followers = roles.filter((role) => role.includes("master_link_status:up"));
      return masters.length + followers.length === cluster.nodes.length;
    },
    { what: "every master of the cluster has a replica", timeoutMs: 30_000 },
  );
}
