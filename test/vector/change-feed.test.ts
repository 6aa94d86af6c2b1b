// Change announcements between writers and readers that share nothing but the records of a store.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MemoryBackend } from "../../src/backends/memory/backend.ts";
import { cacheWithClock, ManualClock } from "../../src/testing/index.ts";
import { ChangeFeed } from "../../src/vector/change-feed.ts";
import type { XCache } from "../../src/xcache.ts";

const HOUR_MS = 3_600_000;

let clock: ManualClock;
let records: XCache;

beforeEach(() => {
  clock = new ManualClock();
  records = cacheWithClock({ backend: new MemoryBackend() }, clock);
});
afterEach(() => records.disconnect());

const open = (): ChangeFeed => new ChangeFeed(records, clock);

const list = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `key ${from + at}`);

describe("a reader", () => {
  test("returns what others announced since the last read, each key once", async () => {
    const [reader, one, two] = [open(), open(), open()];
    expect(await reader.read()).toEqual({ keys: [], isIncomplete: false });
    await one.announce("a");
    await two.announce("b");
    expect(await reader.read()).toEqual({ keys: ["a", "b"], isIncomplete: false });
    expect(await reader.read()).toEqual({ keys: [], isIncomplete: false });
    await two.announce("c");
    expect(await reader.read()).toEqual({ keys: ["c"], isIncomplete: false });
  });

  test("returns the keys of a writer that reuses a slot after a clear", async () => {
    const [reader, old] = [open(), open()];
    await old.announce("a");
    await reader.read();
    await records.clear();
    const young = open();
    await young.announce("b");
    await old.announce("c");
    expect(new Set((await reader.read()).keys)).toEqual(new Set(["b", "c"]));
  });

  test("omits its own keys", async () => {
    const [one, two] = [open(), open()];
    await one.announce("a");
    await two.announce("b");
    expect((await one.read()).keys).toEqual(["b"]);
    expect((await two.read()).keys).toEqual(["a"]);
  });

  test("reads one record while nothing is new", async () => {
    const [reader, writer] = [open(), open()];
    await writer.announce("a");
    await reader.read();
    const asked: string[] = [];
    records.on("hit", ({ key }) => asked.push(key)).on("miss", ({ key }) => asked.push(key));
    await reader.read();
    expect(asked).toEqual(["head"]);
  });

  test("reports missed keys when more was announced than a ring holds", async () => {
    const [reader, writer] = [open(), open()];
    await writer.announce("first");
    await reader.read();
    for (const key of list(0, 256)) await writer.announce(key);
    expect(await reader.read()).toEqual({ keys: list(0, 256), isIncomplete: false });
    for (const key of list(0, 257)) await writer.announce(key);
    expect(await reader.read()).toEqual({ keys: list(1, 257), isIncomplete: true });
    expect(await open().read()).toEqual({ keys: list(1, 257), isIncomplete: true });
  });

  test("reports missed keys after a pause in which rings may have expired", async () => {
    const [reader, writer] = [open(), open()];
    await reader.read();
    await writer.announce("a");
    await clock.advance(2 * HOUR_MS);
    expect((await reader.read()).isIncomplete).toBe(true);
    expect((await reader.read()).isIncomplete).toBe(false);
  });

  test("works again after the records were lost", async () => {
    const [reader, one, two] = [open(), open(), open()];
    await one.announce("a");
    await two.announce("b");
    await reader.read();
    await records.clear();
    expect((await reader.read()).keys).toEqual([]);
    await two.announce("c");
    await one.announce("d");
    const announced = new Set((await reader.read()).keys);
    await two.read();
    await two.announce("e");
    for (const key of (await reader.read()).keys) announced.add(key);
    expect(announced).toContain("d");
    expect(announced).toContain("c");
    expect(announced).toContain("e");
  });

  test("ignores malformed records", async () => {
    await records.set("head", 5);
    await records.set("ring:0", { writer: 1 });
    await records.set("ring:1", { writer: "w", count: 1, keys: [""] });
    const [reader, writer] = [open(), open()];
    expect((await reader.read()).keys).toEqual([]);
    await writer.announce("a");
    expect((await reader.read()).keys).toEqual(["a"]);
  });
});

describe("writers", () => {
  test("announce many keys at once in few records", async () => {
    const [reader, writer] = [open(), open()];
    let writes = 0;
    records.on("set", () => writes++);
    await Promise.all(list(0, 50).map((key) => writer.announce(key)));
    expect((await reader.read()).keys).toEqual(list(0, 50));
    expect(writes).toBeLessThanOrEqual(6);
  });

  test("keep few and small records, however long the keys are", async () => {
    const writer = open();
    for (let at = 0; at < 300; at++) await writer.announce(`${at} `.repeat(60));
    const ring = (await records.get<{ keys: string[] }>("ring:0"))!;
    expect(ring.keys.join("").length).toBeLessThanOrEqual(8_192);
    expect(ring.keys.at(-1)).toBe("299 ".repeat(60));
    const names: string[] = [];
    for await (const key of records.keys()) names.push(key);
    expect(names.sort()).toEqual(["head", "ring:0"]);
  });

  test("that start at the same moment get a slot each", async () => {
    const writers = Array.from({ length: 10 }, open);
    await Promise.all(writers.map((writer, at) => writer.announce(`key ${at}`)));
    expect((await open().read()).keys.toSorted()).toEqual(list(0, 10).toSorted());
  });

  test("that paused for long claim a slot again", async () => {
    const [one, two, reader] = [open(), open(), open()];
    await one.announce("a");
    await clock.advance(2 * HOUR_MS);
    await two.announce("b");
    await one.announce("c");
    expect((await reader.read()).keys.toSorted()).toEqual(["a", "b", "c"]);
  });

  test("whose announcement fails repeat it with the next one", async () => {
    const [reader, writer] = [open(), open()];
    await writer.announce("a");
    await records.disconnect();
    await expect(writer.announce("b")).rejects.toThrow();
    await records.connect();
    await writer.announce("c");
    const { keys } = await reader.read();
    expect(keys).toContain("b");
    expect(keys).toContain("c");
  });
});
