// Connecting and reconnecting to a real cluster while the slot that holds a server's own records is being moved.
import "../../../src/backends/kv/client.ts";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { slotOf } from "../../../src/backends/kv/cluster/slots.ts";
import { XCache } from "../../../src/xcache.ts";
import {
  beginMove,
  endMove,
  type Move,
  moveKeys,
  type Seat,
  seats,
  timesAnswered,
} from "../../support/kv/cluster-layout.ts";
import { redisCli } from "../../support/redis-cli.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

let cluster: RedisCluster;
let caches: XCache[] = [];
let errors: Error[] = [];
let prefixes = 0;

beforeAll(async () => {
  cluster = await startCluster({ replicas: 0 });
});
afterAll(() => cluster?.stop());
afterEach(async () => {
  const open = caches;
  caches = [];
  errors = [];
  await Promise.all(open.map((cache) => cache.disconnect()));
});

/** A cache with a prefix that the cluster has never seen. */
function newcomer(keyPrefix = `moving-${prefixes++}`): XCache {
  const cache = new XCache({
    kvUrl: cluster.url,
    keyPrefix,
    operationTimeout: 3,
    connectTimeout: 3,
    enableMetrics: false,
  });
  cache.on("error", ({ error }) => errors.push(error));
  caches.push(cache);
  return cache;
}

const masters = async (): Promise<readonly Seat[]> =>
  (await seats(cluster)).filter(({ masterId }) => masterId === undefined);

const lowestOf = (seat: Seat): number =>
  Array.from({ length: 16_384 }, (_, slot) => slot).find((slot) => seat.holds(slot)) as number;

/** Moves the slot that holds a server's own records. */
async function moveOfLowest(): Promise<Move> {
  const [from, to] = [...(await masters())].sort((one, other) => lowestOf(one) - lowestOf(other));
  return { slot: lowestOf(from!), from: from!, to: to! };
}

/** Keys on this server, in slots that stay where they are. */
function keysOn({ from, slot }: Move): string[] {
  const names = Array.from({ length: 2_000 }, (_, at) => `{k${at}}`);
  return names.filter((name) => from.holds(slotOf(name)) && slotOf(name) !== slot).slice(0, 5);
}

async function isUsable(cache: XCache, keys: readonly string[]): Promise<void> {
  const tags = [`t${prefixes}`];
  for (const key of keys) {
    await cache.set(key, `${key} set`, { tags });
    expect(await cache.get(key)).toBe(`${key} set`);
  }
  await cache.invalidateTags(tags);
  expect([...(await cache.getMany([...keys])).keys()]).toEqual([]);
  for (const key of keys) expect(await cache.getOrSet(key, () => `${key} loaded`)).toBe(`${key} loaded`);
  await cache.delete([...keys]);
  expect(await cache.get(keys[0]!)).toBeUndefined();
}

async function cutConnections({ from }: Move): Promise<void> {
  await from.server.cli("CLIENT", "KILL", "TYPE", "normal");
}

test("connects, reconnects and invalidates in every stage of moving the slot of a server's own records", async () => {
  const move = await moveOfLowest();
  const keys = keysOn(move);
  const early = newcomer();
  await early.connect();
  await isUsable(early, keys);
  const asked = await timesAnswered(cluster, "ASK");

  await beginMove(move);
  const during = newcomer();
  await during.connect();
  await isUsable(during, keys);
  await cutConnections(move);
  await isUsable(early, keys);
  await isUsable(during, keys);

  await moveKeys(move);
  const later = newcomer();
  await later.connect();
  await cutConnections(move);
  for (const cache of [early, during, later]) await isUsable(cache, keys);
  expect(await timesAnswered(cluster, "ASK")).toBeGreaterThan(asked);

  await endMove(cluster, move);
  await cutConnections(move);
  for (const cache of [early, during, later, newcomer()]) await isUsable(cache, keys);
  expect(errors).toEqual([]);
});

test("an entry invalidated during the move stays invalidated for a client that connects afterwards", async () => {
  const move = await moveOfLowest();
  const [key] = keysOn(move) as [string];
  const prefix = `kept-${prefixes++}`;
  const writer = newcomer(prefix);
  await writer.set(key, "old", { tags: ["t"] });
  await beginMove(move);
  await writer.invalidateTags("t");
  const second = newcomer(prefix);
  expect(await second.get(key)).toBeUndefined();
  await second.set(key, "new", { tags: ["t"] });
  await moveKeys(move);
  await endMove(cluster, move);
  // A client that finds another server in charge may lose stored entries, but never gets an old one.
  expect([undefined, "new"]).toContain(await newcomer(prefix).get(key));
});

test("entries are kept for clients that connect after the slot of a server's own records has moved", async () => {
  const move = await moveOfLowest();
  const keys = keysOn(move);
  const prefix = `stored-${prefixes++}`;
  const writer = newcomer(prefix);
  for (const key of keys) await writer.set(key, "stored");
  await beginMove(move);
  await moveKeys(move);
  await endMove(cluster, move);
  const found = await newcomer(prefix).getMany(keys);
  expect([...found.values()]).toEqual(keys.map(() => "stored"));
  expect(await writer.get(keys[0]!)).toBe("stored");
});

test("clients that come and go while many slots move under load see no error", async () => {
  const { from, to } = await moveOfLowest();
  const port = cluster.nodes[0]!.port;
  let isMoving = true;
  const moving = redisCli(port, {}, [
    "--cluster",
    "reshard",
    `127.0.0.1:${port}`,
    ...["--cluster-from", from.id, "--cluster-to", to.id, "--cluster-slots", "400", "--cluster-yes"],
  ]).finally(() => {
    isMoving = false;
  });
  let rounds = 0;
  const visit = async (visitor: number): Promise<void> => {
    for (let round = 0; isMoving || round < 3; round++) {
      const cache = newcomer();
      for (let at = 0; at < 20; at++) {
        const key = `v${visitor}-${round}-${at}`;
        await cache.set(key, at, { tags: ["all"] });
        expect([at, "loaded"]).toContain(await cache.getOrSet(key, () => "loaded", { tags: ["all"] }));
      }
      await cache.invalidateTags("all");
      for (let at = 0; at < 20; at += 5)
        expect(await cache.get(`v${visitor}-${round}-${at}`)).toBeUndefined();
      await cache.disconnect();
      rounds++;
    }
  };
  await Promise.all([visit(1), visit(2), visit(3), moving]);
  expect(errors).toEqual([]);
  expect(rounds).toBeGreaterThan(8);
  await until(async () => (await cluster.nodes[0]!.cli("CLUSTER", "INFO")).includes("cluster_state:ok"), {
    what: "the cluster is whole",
  });
});
