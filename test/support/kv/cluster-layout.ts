// The layout of a real cluster, and how to move a slot in it by hand.
import type { RedisServer } from "../redis.ts";
import type { RedisCluster } from "../redis-cluster.ts";
import { until } from "../until.ts";

export interface Seat {
  readonly server: RedisServer;
  readonly id: string;
  /** Of its master; undefined for a master. */
  readonly masterId: string | undefined;
  holds(slot: number): boolean;
}

/** As the first of these servers sees it. */
export async function seats(cluster: RedisCluster, witness = cluster.nodes[0]!): Promise<readonly Seat[]> {
  const lines = (await witness.cli("CLUSTER", "NODES")).split("\n").map((line) => line.split(" "));
  return lines.flatMap(([id = "", address = "", , master, , , , , ...slots]) => {
    const port = Number(/:(\d+)@/.exec(address)?.[1]);
    const server = cluster.nodes.find((node) => node.port === port);
    if (server === undefined) return [];
    const ranges = slots
      .filter((range) => !range.startsWith("["))
      .map((range) => range.split("-").map(Number));
    const holds = (slot: number) => ranges.some(([first, last = first]) => slot >= first! && slot <= last!);
    return [{ server, id, masterId: master === "-" ? undefined : master, holds }];
  });
}

export interface Move {
  readonly slot: number;
  readonly from: Seat;
  readonly to: Seat;
}

export async function beginMove({ slot, from, to }: Move): Promise<void> {
  await to.server.cli("CLUSTER", "SETSLOT", String(slot), "IMPORTING", from.id);
  await from.server.cli("CLUSTER", "SETSLOT", String(slot), "MIGRATING", to.id);
}

/** Moves some of the slot's keys; returns how many there were to move. */
export async function moveKeys({ slot, from, to }: Move, most = 1_000): Promise<number> {
  const listed = await from.server.cli("CLUSTER", "GETKEYSINSLOT", String(slot), String(most));
  const keys = listed.split("\n").filter((key) => key !== "");
  if (keys.length > 0) {
    await from.server.cli("MIGRATE", "127.0.0.1", String(to.server.port), "", "0", "5000", "KEYS", ...keys);
  }
  return keys.length;
}

/** The servers in the order in which a handover goes without a gap: first the one that gets the slot. */
export async function endMove(cluster: RedisCluster, { slot, from, to }: Move): Promise<void> {
  for (const { server } of [to, from]) await server.cli("CLUSTER", "SETSLOT", String(slot), "NODE", to.id);
  await until(
    async () => {
      const views = await Promise.all(cluster.nodes.map((node) => seats(cluster, node)));
      return views.every((view) => view.find(({ id }) => id === to.id)?.holds(slot));
    },
    { what: "every server knows of the move" },
  );
}

/** How many times the servers have answered with this error, such as MOVED. */
export async function timesAnswered(cluster: RedisCluster, code: string): Promise<number> {
  const infos = await Promise.all(cluster.nodes.map((node) => node.cli("INFO", "errorstats")));
  return infos.reduce(
    (sum, info) => sum + Number(new RegExp(`errorstat_${code}:count=(\\d+)`).exec(info)?.[1] ?? 0),
    0,
  );
}
