// A record that is overwritten keeps the index rows of the one before, and is still removed when its own time has come.
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Committer } from "../../../src/backends/disk/committer.ts";
import { Environment } from "../../../src/backends/disk/environment.ts";
import type { DiskEviction } from "../../../src/backends/disk/eviction.ts";
import { AREA, rangeOf } from "../../../src/backends/disk/layout/disk-key.ts";
import { rowsOf } from "../../../src/backends/disk/layout/index-row.ts";
import { decodeStored, metaOf } from "../../../src/backends/disk/layout/stored-record.ts";
import { loadLmdb } from "../../../src/backends/disk/lmdb.ts";
import { Gate } from "../../../src/backends/disk/lock/gate.ts";
import { WriteOperation } from "../../../src/backends/disk/operation.ts";
import type { KeyedRecord } from "../../../src/core/backend.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item, stamp } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const freshFolder = freshFolders();
const NOTHING = Buffer.alloc(0);

/** The keys of all rows; fails unless every record has its rows and every row its record. */
function rowsIn(environment: Environment): readonly string[] {
  const rows = [AREA.age, AREA.expiry].flatMap((area) => environment.rows(rangeOf(area, NOTHING), 10_000));
  const records = [AREA.plain, AREA.hashed].flatMap((area) =>
    environment.rows(rangeOf(area, NOTHING), 10_000),
  );
  const expected = records.flatMap(({ key, value }) =>
    rowsOf(metaOf(value)).map((row) => `${row.toString("hex")} ${key.toString("hex")}`),
  );
  const found = rows.map(({ key, value }) => `${key.toString("hex")} ${value.toString("hex")}`);
  expect(found.sort()).toEqual(expected.sort());
  return found;
}

async function rowsOfStore(directory: string): Promise<readonly string[]> {
  const path = join(directory, readdirSync(directory)[0] as string);
  const environment = new Environment(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 28 });
  try {
    return rowsIn(environment);
  } finally {
    await environment.close();
  }
}

const MINUTE_MS = 60_000;
const LONG_KEY = "k".repeat(3_000);

describe("a record that is overwritten", () => {
  const never = Number.POSITIVE_INFINITY;
  test.each([
    ["keeps its rows", "key", 10, MINUTE_MS, MINUTE_MS, true],
    ["keeps its row if neither expires", "key", 10, never, never, true],
    ["keeps the rows of a hashed key", LONG_KEY, 10, MINUTE_MS, MINUTE_MS, true],
    ["gets its own rows if it expires sooner", "key", 10, MINUTE_MS, MINUTE_MS / 2, false],
    ["gets its own rows if it expires much later", "key", 10, MINUTE_MS, 5 * MINUTE_MS, false],
    ["gets its own rows if it no longer expires", "key", 10, MINUTE_MS, never, false],
    ["gets its own rows if it expires from now on", "key", 10, never, MINUTE_MS, false],
    ["gets its own rows if it is large", "key", 5_000, MINUTE_MS, MINUTE_MS, false],
  ])("%s", async (_name, key, bytes, before, next, isKept) => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    await backend.write(item(key, Buffer.alloc(10), before));
    const former = await rowsOfStore(directory);
    await clock.advance(1_000);
    const { record } = item(key, Buffer.alloc(bytes, 1), next);
    await backend.write({ key, record, lifetimeMs: next });
    const rows = await rowsOfStore(directory);
    expect(rows.filter((row) => former.includes(row)).length).toBe(isKept ? former.length : 0);
    expect(await backend.read(key)).toMatchObject({ version: record.version });
    expect(backend.versionNow(key)).toBe(record.version);
    // Written a second time, as by a client that did not hear of the first.
    await clock.advance(1_000);
    await backend.write({ key, record, lifetimeMs: next });
    await rowsOfStore(directory);
    expect(await backend.take(key)).toMatchObject({ version: record.version });
    expect(await rowsOfStore(directory)).toEqual([]);
    await backend.disconnect();
  });

  test("gets its own rows if a stamp replaces an entry", async () => {
    const directory = freshFolder();
    const backend = opened({ directory });
    await backend.write(item("key"));
    const former = await rowsOfStore(directory);
    await backend.write({ ...item("key"), record: stamp() });
    expect(await rowsOfStore(directory)).not.toEqual(former);
    await backend.disconnect();
  });

  test("is not removed when the row it kept is due, but when it has expired", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    await backend.write(item("key", undefined, MINUTE_MS));
    await clock.advance(20_000);
    const { record } = item("key");
    await backend.write({ key: "key", record, lifetimeMs: MINUTE_MS });
    const kept = await rowsOfStore(directory);
    for (let seconds = 21; seconds < 80; seconds++) {
      await clock.advance(1_000);
      expect(await backend.read("key"), `after ${seconds} s`).toMatchObject({ version: record.version });
    }
    const moved = await rowsOfStore(directory);
    expect(moved).toHaveLength(2);
    expect(moved.filter((row) => kept.includes(row))).toEqual([]);
    await until(
      async () => {
        await backend.read("other");
        await clock.advance(1_000);
        return (await rowsOfStore(directory)).length === 0;
      },
      { what: "the record and its rows are gone" },
    );
    await backend.disconnect();
  });

  test("is evicted by the time it was written last", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const evicted: string[] = [];
    const backend = opened(
      { directory, maxBytes: 2 ** 20 },
      { clock, evicted: (key) => void evicted.push(key) },
    );
    await backend.writeMany([item("rewritten"), item("left alone")]);
    await backend.write(item("rewritten"));
    for (let at = 0; at < 400; at++) {
      await clock.advance(1);
      if (at === 100) await backend.write(item("rewritten"));
      await backend.write(item(`key${at}`, Buffer.alloc(1_000)));
    }
    for (let at = 0; !evicted.includes("key99"); at++) {
      expect(at).toBeLessThan(1_000);
      expect(evicted).not.toContain("rewritten");
      await clock.advance(1);
      await backend.write(item(`more${at}`, Buffer.alloc(1_000)));
    }
    expect(evicted[0]).toBe("left alone");
    for (let at = 0; !evicted.includes("rewritten"); at++) {
      expect(at).toBeLessThan(1_000);
      await clock.advance(1);
      await backend.write(item(`late${at}`, Buffer.alloc(1_000)));
    }
    expect(evicted).not.toContain("key399");
    expect(await backend.read("rewritten")).toBeUndefined();
    await rowsOfStore(directory);
    await backend.disconnect();
  });
});

describe("a commit after which another writer was faster", () => {
  const room = { maxBatchBytes: 2 ** 20, hasBacklog: false, plan: () => [] } as unknown as DiskEviction;

  test("is repeated as a whole and in order, and leaves no row and no record alone", async () => {
    const path = freshFolder();
    mkdirSync(path);
    const environment = new Environment(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 28 });
    const writer = (): Committer =>
      new Committer(environment, new Gate(path, systemClock), systemClock, room, 10_000);
    const [one, other] = [writer(), writer()];
    const write = (committer: Committer, written: KeyedRecord): Promise<void> =>
      new Promise((resolve, reject) => committer.add(new WriteOperation(written, resolve, reject), 10_000));
    await write(one, item("shared"));
    await write(one, item("own"));
    const order: string[] = [];
    const last = item("shared");
    for (let round = 0; round < 40; round++) {
      order.length = 0;
      // Both plan from the same snapshot. The large record gets rows of its own in place of those that the other would keep.
      await Promise.all([
        write(one, item("shared", Buffer.alloc(5_000))),
        write(other, item("own")).then(() => order.push("own")),
        write(other, round === 39 ? last : item("shared")).then(() => order.push("shared")),
        write(other, item("new")).then(() => order.push("new")),
      ]);
      expect(order).toEqual(["own", "shared", "new"]);
    }
    const shared = environment.read("shared");
    expect(shared && decodeStored(shared, "shared")).toMatchObject({ version: last.record.version });
    const rows = environment.rows(rangeOf(AREA.age, NOTHING), 10_000);
    for (const key of ["shared", "own", "new"]) {
      for (const row of rowsOf(metaOf(environment.read(key) as Buffer))) {
        expect(
          rows.some((found) => found.key.equals(row) && found.value.subarray(1).toString() === key),
        ).toBe(true);
      }
    }
    await environment.close();
  });
});
