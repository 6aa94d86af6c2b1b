// Slots that move between the servers of a real cluster while they are in use.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { KvBackend } from "../../../src/backends/kv/backend.ts";
import { SLOTS, slotOf, tagForSlot } from "../../../src/backends/kv/cluster/slots.ts";
import { sampleEntry } from "../../../src/testing/contract/sample.ts";
import {
  beginMove,
  endMove,
  type Move,
  moveKeys,
  seats,
  timesAnswered,
} from "../../support/kv/cluster-layout.ts";
import { opened } from "../../support/kv/opened.ts";
import { isRedis6 } from "../../support/redis.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

let cluster: RedisCluster;
const clients: KvBackend[] = [];

beforeAll(async () => {
  cluster = await startCluster();
  const rules = ["on", ">secret", "~*", ...(isRedis6() ? [] : ["&*"]), "+@all", "-eval", "-evalsha"];
  await Promise.all(cluster.nodes.map(({ cli }) => cli("ACL", "SETUSER", WITHOUT_SCRIPTS, ...rules)));
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.disconnect()));
  await cluster?.stop();
});

const WITHOUT_SCRIPTS = "noscripts";

async function connectedClient(user?: string): Promise<KvBackend> {
  const url = user === undefined ? cluster.url : cluster.url.replace("://", `://${user}:secret@`);
  const client = opened(url, { operationTimeoutMs: 5_000 });
  clients.push(client);
  await client.connect();
  return client;
}

async function moveOf(slot: number): Promise<Move> {
  const masters = (await seats(cluster)).filter(({ masterId }) => masterId === undefined);
  return {
    slot,
    from: masters.find((seat) => seat.holds(slot))!,
    to: masters.find((seat) => !seat.holds(slot))!,
  };
}

/** Writes and swaps one key repeatedly, and checks every read; it is the key's only writer. */
class Worker {
  readonly #client: KvBackend;
  readonly #key: string;
  #version = "";
  rounds = 0;
  isDone = false;

  constructor(client: KvBackend, key: string) {
    this.#client = client;
    this.#key = key;
  }

  async run(): Promise<void> {
    while (!this.isDone) {
      const record = sampleEntry(this.#key);
      if (this.rounds % 3 === 2) {
        const next = { record, lifetimeMs: 60_000 };
        expect(await this.#client.swap(this.#key, this.#version, next)).toEqual({ won: true });
      } else await this.#client.write({ key: this.#key, record, lifetimeMs: 60_000 });
      this.#version = record.version;
      await this.check();
      this.rounds++;
    }
  }

  async check(client = this.#client): Promise<void> {
    expect((await client.read(this.#key))?.version).toBe(this.#version);
  }
}

test.each([
  ["scripts", undefined, "{moving}"],
  ["WATCH and MULTI", WITHOUT_SCRIPTS, "{watched}"],
])(
  "a slot that moves while it is read and swapped with %s loses nothing, through both ASK and MOVED",
  async (_, user, tag) => {
    const client = await connectedClient(user);
    const workers = Array.from({ length: 12 }, (_, at) => new Worker(client, `${tag}:${at}`));
    const move = await moveOf(slotOf(tag));
    const before = { ask: await timesAnswered(cluster, "ASK"), moved: await timesAnswered(cluster, "MOVED") };
    const work = Promise.all(workers.map((worker) => worker.run()));
    const progress = async () => {
      const goal = Math.min(...workers.map(({ rounds }) => rounds)) + 4;
      await Promise.race([
        until(() => workers.every(({ rounds }) => rounds >= goal), { what: "the work goes on" }),
        work,
      ]);
    };
    await progress();
    await beginMove(move);
    await progress();
    await moveKeys(move, 5);
    await progress();
    while ((await moveKeys(move)) > 0) await progress();
    await endMove(cluster, move);
    await progress();
    for (const worker of workers) worker.isDone = true;
    await work;
    const newcomer = await connectedClient();
    await Promise.all(workers.map((worker) => worker.check(newcomer)));
    expect(await timesAnswered(cluster, "ASK")).toBeGreaterThan(before.ask);
    expect(await timesAnswered(cluster, "MOVED")).toBeGreaterThan(before.moved);
  },
);

test("near copies of a slot are not trusted after it moved, and pushes come from its new server", async () => {
  const [client, other] = [await connectedClient(), await connectedClient()];
  const key = "{pushed}:1";
  const item = () => ({ key, record: sampleEntry(key), lifetimeMs: 60_000 });
  const changes = new Set<string | undefined>();
  client.push.onChange((changed) => changes.add(changed));
  await other.write(item());

  /** Reads under a trusted epoch, then sees the push of another client's write. */
  const isToldOfChanges = async () => {
    const epoch = await until(
      async () => {
        const asked = client.push.epoch(key);
        await client.read(key);
        return asked !== 0 && asked === client.push.epoch(key) ? asked : undefined;
      },
      { what: "a read can be kept" },
    );
    changes.clear();
    await other.write(item());
    await until(() => changes.has(key), { what: "the push of a change" });
    return epoch;
  };

  const epochs = [await isToldOfChanges()];
  for (let round = 0; round < 2; round++) {
    await client.read(key);
    changes.clear();
    const move = await moveOf(slotOf(key));
    await beginMove(move);
    await moveKeys(move);
    await endMove(cluster, move);
    await until(() => client.push.epoch(key) !== epochs.at(-1), { what: "the move is noticed" });
    expect(changes.size).toBeGreaterThan(0);
    epochs.push(await isToldOfChanges());
  }
  // Moved there and back: the same server, another epoch.
  expect(new Set(epochs).size).toBe(3);
});

test("a scan finds a key that moves to a server already scanned, although its slot has not moved yet", async () => {
  const client = await connectedClient();
  const slot = SLOTS - 2;
  const key = `scan:{${tagForSlot(slot)}}`;
  await client.write({ key, record: sampleEntry(key), lifetimeMs: 60_000 });
  const masters = (await seats(cluster)).filter(({ masterId }) => masterId === undefined);
  const move: Move = {
    slot,
    from: masters.find((seat) => seat.holds(slot))!,
    // Scanned first.
    to: masters.find((seat) => seat.holds(0))!,
  };
  const found: string[] = [];
  let batches = 0;
  for await (const batch of client.scan("scan:")) {
    found.push(...batch.map((item) => item.key));
    if (++batches > 1) continue;
    await beginMove(move);
    expect(await moveKeys(move)).toBe(1);
  }
  await endMove(cluster, move);
  expect(found).toContain(key);
});

test("a scan finds the keys of a slot that leaves its server and returns to it during the scan", async () => {
  const client = await connectedClient();
  const away = await moveOf(SLOTS - 3);
  const back: Move = { ...away, from: away.to, to: away.from };
  const spell = (slot: number, at: number): string => `back:{${tagForSlot(slot)}}:${at}`;
  const keys = Array.from({ length: 60 }, (_, at) => spell(away.slot, at));
  // Of a slot that stays, so many that the scan takes several steps.
  const others = Array.from({ length: 4_000 }, (_, at) => spell(away.slot - 1, at));
  await Promise.all(
    [...keys, ...others].map((key) => client.write({ key, record: sampleEntry(key), lifetimeMs: 60_000 })),
  );
  const moveAll = async (move: Move) => {
    await beginMove(move);
    while ((await moveKeys(move)) > 0);
    await endMove(cluster, move);
  };
  const found = new Set<string>();
  let steps = 0;
  for await (const batch of client.scan("back:")) {
    for (const { key } of batch) found.add(key);
    if (!batch.some(({ key }) => others.includes(key))) continue;
    steps++;
    if (steps === 1) await moveAll(away);
    if (steps === 2) await moveAll(back);
  }
  expect(steps).toBeGreaterThan(2);
  expect(keys.filter((key) => !found.has(key))).toEqual([]);
});
