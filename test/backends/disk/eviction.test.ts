// Eviction: expired records leave, and the oldest ones when the store is full; stamps last.
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Environment } from "../../../src/backends/disk/environment.ts";
import { encodeStored } from "../../../src/backends/disk/layout/stored-record.ts";
import { loadLmdb } from "../../../src/backends/disk/lmdb.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item, stamp } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const freshFolder = freshFolders();
const MEGABYTE = 1024 ** 2;

/** The store's file in a folder. */
const pathIn = (directory: string): string => join(directory, readdirSync(directory)[0] as string);

/** Overwrites a record with three bytes. */
async function damage(directory: string, key: string): Promise<void> {
  const settings = { path: pathIn(directory), isSynced: false, mapBytes: 2 ** 28 };
  const environment = new Environment(await loadLmdb(), settings);
  await environment.store.put(key, Buffer.from([0, 1, 2]), 1);
  await environment.close();
}

describe("a bounded store", () => {
  test.each([
    ["small entries", 300, 40_000],
    ["entries of many pages", 60_000, 500],
    ["entries of all sizes", undefined, 4_000],
  ])(
    "takes many times its bound of %s: the oldest are evicted and reported, the latest and the stamps stay",
    {
      timeout: 60_000,
    },
    async (_name, size, count) => {
      const directory = freshFolder();
      const maxBytes = 4 * MEGABYTE;
      const evicted = new Set<string>();
      const backend = opened({ directory, maxBytes }, { evicted: (key) => void evicted.add(key) });
      await backend.write({ key: "stamp", record: stamp(), lifetimeMs: Number.POSITIVE_INFINITY });
      await backend.write(item("first"));
      const sizeOf = (at: number): number => size ?? 20 + ((at * 7919) % 20_000);
      for (let at = 0; at < count; at += 100) {
        const items = Array.from({ length: 100 }, (_, more) =>
          item(`key${at + more}`, Buffer.alloc(sizeOf(at + more))),
        );
        await backend.writeMany(items);
      }
      expect(evicted.has("first")).toBe(true);
      expect(await backend.read("first")).toBeUndefined();
      expect(await backend.read("stamp")).toBeDefined();
      expect(await backend.read(`key${count - 1}`)).toBeDefined();
      const { usedBytes } = (await backend.describe()) as { usedBytes: number };
      expect(usedBytes).toBeGreaterThan(0.6 * maxBytes);
      expect(usedBytes).toBeLessThan(1.1 * maxBytes);
      expect(statSync(join(pathIn(directory), "data.mdb")).size).toBeLessThan(2 * maxBytes);
      // Exactly the missing entries were reported.
      for (let at = 0; at < count; at += 97) {
        expect((await backend.read(`key${at}`)) === undefined, `key${at}`).toBe(evicted.has(`key${at}`));
      }
      await backend.disconnect();
    },
  );

  test("drops a damaged record like any other, and accepts what is written in its place", async () => {
    const directory = freshFolder();
    const backend = opened({ directory, maxBytes: MEGABYTE });
    for (const key of ["damaged", "rewritten"]) {
      await backend.write(item(key));
      await damage(directory, key);
    }
    await backend.write(item("rewritten"));
    for (let at = 0; at < 600; at += 20) {
      await backend.writeMany(
        Array.from({ length: 20 }, (_, more) => item(`${at + more}`, Buffer.alloc(2_000))),
      );
      // In use at that moment, and among the oldest.
      await backend.write(item("rewritten"));
    }
    expect(await backend.read("damaged")).toBeUndefined();
    expect(await backend.read("rewritten")).toBeDefined();
    await backend.disconnect();
  });

  test("is as full after a restart as before", async () => {
    const directory = freshFolder();
    const maxBytes = 2 * MEGABYTE;
    for (let round = 0; round < 3; round++) {
      const backend = opened({ directory, maxBytes });
      for (let at = 0; at < 1_000; at += 50) {
        await backend.writeMany(
          Array.from({ length: 50 }, (_, more) => item(`${round}-${at + more}`, Buffer.alloc(2_000))),
        );
      }
      expect(((await backend.describe()) as { usedBytes: number }).usedBytes).toBeLessThan(1.1 * maxBytes);
      expect(await backend.read(`${round}-999`)).toBeDefined();
      await backend.disconnect();
    }
  });

  test("rejects a value that would take more than half of it, before evicting anything", async () => {
    const backend = opened({ directory: freshFolder(), maxBytes: MEGABYTE });
    await backend.write(item("present"));
    await expect(backend.write(item("large", Buffer.alloc(MEGABYTE)))).rejects.toMatchObject({
      code: "VALUE_TOO_LARGE",
    });
    const next = { record: item("large", Buffer.alloc(MEGABYTE)).record, lifetimeMs: 1_000 };
    await expect(backend.swap("large", undefined, next)).rejects.toMatchObject({ code: "VALUE_TOO_LARGE" });
    expect(await backend.read("present")).toBeDefined();
    await backend.disconnect();
  });
});

describe("an expired record", () => {
  /** Its format and the mark of the latest commit. */
  const ABOUT_STORE = 2;

  /** Records and rows in the file. */
  async function left(directory: string): Promise<number> {
    const environment = new Environment(await loadLmdb(), {
      path: pathIn(directory),
      isSynced: false,
      mapBytes: 2 ** 28,
    });
    try {
      return environment.store.env.stat().entryCount;
    } finally {
      await environment.close();
    }
  }

  test("is removed from the file while the store is in use, in small steps, with its rows", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    const items = Array.from({ length: 500 }, (_, at) => item(`key${at}`, undefined, 5_000));
    await backend.writeMany([...items, item("kept"), item("later", undefined, 3_600_000)]);
    await clock.advance(10_000);
    expect(await backend.read("key1")).toBeUndefined();
    // A record without expiry with one row, and one with two.
    const present = ABOUT_STORE + 2 + 3;
    await until(
      async () => {
        await backend.read("kept");
        await clock.advance(1_000);
        return (await left(directory)) === present;
      },
      { what: "the file holds only what has not ended" },
    );
    expect(await backend.read("later")).toBeDefined();
    await backend.disconnect();
  });

  test("is removed even if it is damaged", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    await backend.write(item("key", undefined, 1_000));
    await damage(directory, "key");
    await until(
      async () => {
        await backend.read("other");
        await clock.advance(1_000);
        return (await left(directory)) === ABOUT_STORE;
      },
      { what: "the record and its rows are gone" },
    );
    expect(await backend.read("key")).toBeUndefined();
    await backend.disconnect();
  });

  test("that another process has replaced leaves no row behind", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    const before = [item("key"), { ...item("tag"), record: stamp() }];
    await backend.writeMany(before);
    // As left by a process that did not see what it replaced: the records are others, the rows stay.
    const settings = { path: pathIn(directory), isSynced: false, mapBytes: 2 ** 28 };
    const environment = new Environment(await loadLmdb(), settings);
    for (const { key } of before) {
      const { bytes } = encodeStored(key, { ...item(key), record: stamp() }, clock.now());
      await environment.store.put(key, bytes, 1);
    }
    await environment.close();
    expect(await left(directory)).toBe(ABOUT_STORE + 2 + 2);
    await until(
      async () => {
        await backend.read("key");
        await clock.advance(1_000);
        return (await left(directory)) === ABOUT_STORE + 2;
      },
      { what: "the rows are gone" },
    );
    expect(await backend.readMany(["key", "tag"])).toEqual([expect.anything(), expect.anything()]);
    await backend.disconnect();
  });

  test("is left alone by a process that does not use the store, and its timers are idle", async () => {
    const clock = new ManualClock();
    const backend = opened({ directory: freshFolder() }, { clock });
    await backend.write(item("key", undefined, 100));
    await clock.advance(60_000);
    expect(clock.pending).toBe(0);
    await backend.read("key");
    expect(clock.pending).toBe(1);
    await backend.disconnect();
    expect(clock.pending).toBe(0);
  });

  test("is not removed together with a newer record under its key", async () => {
    const directory = freshFolder();
    const clock = new ManualClock();
    const backend = opened({ directory }, { clock });
    await backend.write(item("key", undefined, 1_000));
    await backend.write(item("key", undefined, 60_000));
    for (let at = 0; at < 20; at++) {
      await clock.advance(1_000);
      expect(await backend.read("key")).toBeDefined();
    }
    expect(await left(directory)).toBe(ABOUT_STORE + 3);
    await backend.disconnect();
  });
});
