// What is specific to the disk store: its options, its keys, and several backends of one process on one folder.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DiskBackend } from "../../../src/backends/disk/backend.ts";
import { prepareFolder } from "../../../src/backends/disk/directory.ts";
import { Environment } from "../../../src/backends/disk/environment.ts";
import { recordKey } from "../../../src/backends/disk/layout/disk-key.ts";
import { loadLmdb } from "../../../src/backends/disk/lmdb.ts";
import type { DiskOptions } from "../../../src/backends/disk/options.ts";
import { ConfigError, ConnectionError } from "../../../src/core/errors.ts";
import { codePoint } from "../../support/code-point.ts";
import { DiskProcess } from "../../support/disk/disk-process.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { entry, item } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const freshFolder = freshFolders();

describe("options", () => {
  test.each([
    [undefined, "CONFIG_INVALID", "an object"],
    [{}, "CONFIG_INVALID", "directory must be an absolute path, got undefined"],
    [{ directory: "relative" }, "CONFIG_INVALID", 'got "relative"'],
    [{ directory: "/d", maxBytes: 5 }, "CONFIG_INVALID", "from 1048576 to"],
    [{ directory: "/d", maxBytes: 1e6 + 0.5 }, "CONFIG_INVALID", "a whole number"],
    [{ directory: "/d", maxBytes: 2 ** 44 }, "CONFIG_INVALID", "to 8796093022208, got"],
    [{ directory: "/d", durability: "none" }, "CONFIG_INVALID", '"process" or "disk", got "none"'],
    [{ directory: "/d", maxByte: 1 }, "CONFIG_UNKNOWN_FIELD", 'did you mean "maxBytes"?'],
    [{ kvUrl: "redis://h" }, "CONFIG_INVALID", "must be a file:// address"],
    [{ kvUrl: "file:///d", maxBytes: 2 ** 20 }, "CONFIG_INVALID", "kvUrl alone, got maxBytes as well"],
  ])("%j are rejected", (options, code, words) => {
    const make = (): DiskBackend => new DiskBackend(options as unknown as DiskOptions);
    expect(make).toThrow(ConfigError);
    expect(make).toThrow(words);
    expect(make).toThrow(expect.objectContaining({ code }));
  });

  test("from an address and from an object are equivalent, and are reported by describe()", async () => {
    const directory = freshFolder();
    const maxBytes = 2 ** 21;
    for (const options of [
      { directory, maxBytes, durability: "disk" as const },
      { kvUrl: `file://${directory}?max_bytes=${maxBytes}&durability=disk` },
    ]) {
      const backend = new DiskBackend(options);
      expect(await backend.describe()).toMatchObject({ directory, maxBytes, durability: "disk", readers: 1 });
      await backend.disconnect();
    }
  });
});

describe("keys", () => {
  const written = (key: string): string => {
    const diskKey = recordKey(key);
    return typeof diskKey === "string"
      ? `2${Buffer.from(diskKey).toString("hex")}`
      : diskKey.toString("hex").slice(1);
  };
  /** Lengths around the longest that fits, and lone surrogates. */
  const anyKey = fc.oneof(
    fc.string({ unit: codePoint, minLength: 1, maxLength: 20 }),
    fc
      .array(fc.constantFrom("\ud800", "\udc00", "a", "\u00e9", "\u20ac"), { minLength: 1, maxLength: 8 })
      .map((units) => units.join("")),
    fc
      .tuple(fc.integer({ min: 640, max: 1_990 }), fc.constantFrom("x", "\u00e9", "\u20ac"))
      .map(([length, unit]) => unit.repeat(length)),
  );

  test("that differ are stored under distinct keys that fit LMDB", () => {
    fc.assert(
      fc.property(anyKey, anyKey, (one, other) => {
        expect(written(one) === written(other)).toBe(one === other);
        expect(written(one).length / 2).toBeLessThanOrEqual(1_978);
      }),
    );
  });

  test("beyond LMDB's limit are listed in full by a scan", async () => {
    const backend = opened({ directory: freshFolder() });
    const keys = ["a", "b"].map((last) => `prefix:${"\u20ac".repeat(1_000)}${last}`);
    for (const key of keys) await backend.write(item(key));
    const found: string[] = [];
    for await (const batch of backend.scan("prefix:")) found.push(...batch.map(({ key }) => key));
    expect(found.sort()).toEqual(keys);
    expect(await backend.usage("prefix:")).toMatchObject({ keys: 2 });
    expect(await backend.usage("other:")).toMatchObject({ keys: 0 });
    await backend.disconnect();
  });

  test("beyond LMDB's limit are compared in full: another key's record under the same hash is not returned", async () => {
    const directory = freshFolder();
    const backend = opened({ directory });
    const [mine, other] = ["mine", "other"].map((name) => name.repeat(1_000)) as [string, string];
    await backend.write(item(other));
    const { path } = prepareFolder(directory, "process");
    const environment = new Environment(await loadLmdb(), { path, isSynced: false, mapBytes: 2 ** 28 });
    const bytes = environment.read(recordKey(other)) as Buffer;
    // As if both had the same hash.
    await environment.store.put(recordKey(mine), bytes, 1);
    await environment.close();
    expect(await backend.read(other)).toBeDefined();
    expect(await backend.read(mine)).toBeUndefined();
    expect(await backend.readMany([mine])).toEqual([undefined]);
    expect(backend.versionNow(mine)).toBeUndefined();
    expect(await backend.take(mine)).toBeUndefined();
    await backend.write(item(mine));
    expect(await backend.read(mine)).toMatchObject({ key: mine });
    await backend.disconnect();
  });
});

describe("backends of one process on one folder", () => {
  test("share it: one sees what the other wrote, and continues when the other is closed", async () => {
    const directory = freshFolder();
    const [one, other] = [opened({ directory }), opened({ directory })];
    await Promise.all([one.connect(), other.connect()]);
    await one.write(item("key"));
    expect(await other.read("key")).toBeDefined();
    expect(await other.describe()).toMatchObject({ readers: 1 });
    const last = one.write(item("last"));
    await one.disconnect();
    await last;
    expect(await other.read("last")).toBeDefined();
    await expect(one.read("key")).rejects.toMatchObject({ code: "DISCONNECTED" });
    await expect(one.write(item("key"))).rejects.toBeInstanceOf(ConnectionError);
    await one.connect();
    expect(await one.read("last")).toBeDefined();
    await Promise.all([one.disconnect(), other.disconnect()]);
  });

  test("can be connected again before a disconnect has finished", async () => {
    const backend = opened({ directory: freshFolder() });
    const first = backend.connect();
    const gone = backend.disconnect();
    const second = backend.connect();
    await expect(first).rejects.toMatchObject({ code: "DISCONNECTED" });
    await Promise.all([gone, second]);
    await backend.write(item("key"));
    expect(await backend.read("key")).toBeDefined();
    await backend.disconnect();
  });

  test("can be opened and closed at once any number of times", async () => {
    const directory = freshFolder();
    for (let round = 0; round < 10; round++) {
      const backends = Array.from({ length: 3 }, () => opened({ directory }));
      await Promise.all(backends.map((backend, at) => backend.write(item(`${round}-${at}`))));
      const closing = backends.map((backend) => backend.disconnect());
      const next = opened({ directory });
      expect(await next.read(`${round}-1`)).toBeDefined();
      await Promise.all([...closing, next.disconnect()]);
    }
  });
});

test("changes of one tick are one commit, in the order they were made", async () => {
  const backend = opened({ directory: freshFolder() });
  await backend.connect();
  const done: string[] = [];
  const note = (what: string) => (): void => void done.push(what);
  await Promise.all([
    backend.write(item("a")).then(note("write a")),
    backend.write(item("b", Buffer.from("old"))).then(note("write b")),
    backend.write(item("b", Buffer.from("new"))).then(note("write b again")),
    backend.take("a").then(note("take a")),
    backend.write(item("c")).then(note("write c")),
  ]);
  expect(done).toEqual(["write a", "write b", "write b again", "take a", "write c"]);
  expect(await backend.read("a")).toBeUndefined();
  const b = await backend.read("b");
  expect(b?.kind === "entry" && Buffer.from(b.payload.bytes).toString()).toBe("new");
  await backend.disconnect();
});

test("a change made while another one's failure is being reported comes after the changes made before it", async () => {
  const directory = freshFolder();
  const [hasty, other] = [opened({ directory }, { operationTimeoutMs: 0 }), opened({ directory })];
  await Promise.all([other.connect(), hasty.connect()]);
  const taken = new Promise((resolve) => {
    hasty.writeThen(
      item("late"),
      () => resolve("written"),
      () => resolve(other.take("key")),
    );
  });
  await other.write(item("key"));
  expect(await taken).toMatchObject({ key: "key" });
  expect(await other.read("key")).toBeUndefined();
  await Promise.all([hasty.disconnect(), other.disconnect()]);
});

test("large records are scanned without their values, and none is skipped", async () => {
  const directory = freshFolder();
  const backend = opened({ directory });
  const keys = Array.from({ length: 9 }, (_, at) => `key${at}`);
  for (const key of keys) await backend.write(item(key, Buffer.alloc(1_500_000)));
  const before = process.memoryUsage().arrayBuffers;
  const scanned: string[] = [];
  for await (const batch of backend.scan("key")) scanned.push(...batch.map(({ key }) => key));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_500_000);
  expect(scanned.sort()).toEqual(keys);
  const { keys: counted, bytes } = await backend.usage("key");
  expect(counted).toBe(9);
  expect(bytes).toBeGreaterThan(9 * 1_500_000);
  expect(bytes).toBeLessThan(9 * 1_501_000);
  await backend.disconnect();
});

test("of many concurrent swaps from one version, one wins and the others get its record", async () => {
  const directory = freshFolder();
  const [one, other] = [opened({ directory }), opened({ directory })];
  const first = item("key");
  await one.write(first);
  const records = Array.from({ length: 20 }, () => entry("key"));
  const results = await Promise.all(
    records.map((record, at) =>
      (at % 2 === 0 ? one : other).swap("key", first.record.version, { record, lifetimeMs: 1_000 }),
    ),
  );
  expect(results.filter(({ won }) => won)).toHaveLength(1);
  const winner = records[results.findIndex(({ won }) => won)];
  for (const result of results) if (!result.won) expect(result.current?.version).toBe(winner?.version);
  await Promise.all([one.disconnect(), other.disconnect()]);
});

test("the reader slots of killed processes are freed", async () => {
  const directory = freshFolder();
  const backend = opened({ directory });
  await backend.connect();
  for (let round = 0; round < 3; round++) {
    await using own = new DiskProcess(
      `
      const backend = openBackend();
      await backend.read("key");
      say("read");
      await nextMessage();
    `,
      { directory },
    );
    await own.heard("read");
    expect(await backend.describe()).toMatchObject({ readers: 2 });
    own.signal("SIGKILL");
    await own.ended();
  }
  const readers = await until(
    async () => {
      await backend.read("key");
      return (await backend.describe()).readers;
    },
    { what: "the store reports its readers" },
  );
  // Opening it clears what the killed processes left behind.
  expect(readers).toBeLessThanOrEqual(2);
  await backend.disconnect();
});
