// Processes killed at any point under write load: the store opens, has every acknowledged write, and nothing partial.
import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Environment } from "../../../src/backends/disk/environment.ts";
import { AREA, rangeOf } from "../../../src/backends/disk/layout/disk-key.ts";
import { byAge, rowsOf } from "../../../src/backends/disk/layout/index-row.ts";
import { metaOf } from "../../../src/backends/disk/layout/stored-record.ts";
import { loadLmdb } from "../../../src/backends/disk/lmdb.ts";
import { openApart } from "../../../src/backends/disk/lock/gate.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";

const freshFolder = freshFolders();
const seed = Number(process.env.XCACHE_CRASH_SEED ?? randomInt(2 ** 31));

/** Writes as fast as it can, a few at a time, and prints the acknowledged ones: a line each, straight to the pipe. */
const WRITER = `
  const backend = openBackend({ operationTimeoutMs: 20_000 });
  await backend.connect();
  let sequence = settings.from;
  const writer = async (name) => {
    for (;;) {
      const number = sequence++;
      const key = settings.name + ":" + name;
      // From a few bytes to many pages.
      const bytes = Buffer.alloc(20 + (number * 7919) % 20_000, number % 251);
      bytes.writeUInt32BE(number, 0);
      await backend.write({ key, record: entry(key, bytes), lifetimeMs: 3_600_000 });
      writeSync(1, key + " " + number + "\\n");
    }
  };
  for (let at = 0; at < 8; at++) writer(at);
`;

/** The last acknowledged number of each key. */
function acknowledgedIn(output: string): ReadonlyMap<string, number> {
  const lines = output
    .split("\n")
    .slice(0, -1)
    .map((line) => line.split(" "));
  return new Map(lines.map(([key, number]) => [key as string, Number(number)]));
}

interface Killed {
  readonly acknowledged: ReadonlyMap<string, number>;
}

async function killedAfter(
  directory: string,
  durability: string,
  name: string,
  from: number,
  acks: number,
): Promise<Killed> {
  await using own = new DiskProcess(WRITER, { directory, name, from, options: { durability } });
  while (own.output.split("\n").length <= acks) await own.wrote();
  own.signal("SIGKILL");
  const { signal } = await own.ended();
  expect(signal, own.errors).toBe("SIGKILL");
  return { acknowledged: acknowledgedIn(own.output) };
}

/** Every record has its rows and every age row has its record. */
async function expectWhole(directory: string, durability: string): Promise<void> {
  const [name] = readdirSync(directory);
  const settings = {
    path: join(directory, name as string),
    isSynced: durability === "disk",
    mapBytes: 2 ** 30,
  };
  const lmdb = await loadLmdb();
  const waiting = { clock: systemClock, limitMs: 10_000, busy: () => new Error("the writer hangs") };
  const environment = await openApart(settings.path, waiting, () => new Environment(lmdb, settings));
  try {
    // In one snapshot: the surviving process keeps writing.
    environment.snapshot((get) => {
      const records = environment.rowsWithin(rangeOf(AREA.plain, Buffer.alloc(0)), 10_000);
      const rows = environment.rowsWithin(byAge(), 10_000);
      expect(rows.map(({ value }) => value.toString("latin1")).sort()).toEqual(
        records.map(({ key }) => key.toString("latin1")).sort(),
      );
      for (const { key, value } of records) {
        for (const row of rowsOf(metaOf(value))) expect(get(row)).toEqual(key);
      }
    });
  } finally {
    await environment.close();
  }
}

test.each([
  ["process", 27],
  ["disk", 3],
] as const)("with durability %s, after each of %i kills", async (durability, rounds) => {
  console.log(`crash seed ${seed}`);
  const random = seededRandom(seed);
  const directory = freshFolder();
  const latest = new Map<string, number>();
  // A process that survives: the others are killed while it holds the lock, or waits for it, and open while it commits.
  await using other = new DiskProcess(WRITER, { directory, name: "b", from: 1, options: { durability } });
  await other.wrote();
  for (let round = 0; round < rounds; round++) {
    const acks = Math.floor(random() * 60);
    const { acknowledged } = await killedAfter(directory, durability, "a", round * 1_000_000, acks);
    for (const [key, number] of acknowledged) latest.set(key, number);
    const backend = opened({ directory, durability });
    for (const [key, number] of [...latest, ...acknowledgedIn(other.output)]) {
      const record = await backend.read(key);
      if (record?.kind !== "entry") throw new Error(`round ${round}, seed ${seed}: ${key} is gone`);
      const bytes = Buffer.from(record.payload.bytes);
      const found = bytes.readUInt32BE(0);
      expect(found, `round ${round}, seed ${seed}: ${key}`).toBeGreaterThanOrEqual(number);
      expect(bytes.length).toBe(20 + ((found * 7919) % 20_000));
      expect(bytes.subarray(4).every((byte) => byte === found % 251)).toBe(true);
    }
    await backend.disconnect();
    await expectWhole(directory, durability);
  }
});
