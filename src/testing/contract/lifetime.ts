// Contract cases: how long the store keeps a record.
import assert from "node:assert/strict";
import { assertSameRecord, FOR_EVER, sampleEntry, sampleLease, sampleStamp } from "./sample.ts";
import { type ContractGroup, rule } from "./stage.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Around the limits of timers, 32-bit seconds and stores. */
const LONG_LIFETIMES = [
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 + 1,
  31 * DAY_MS,
  100 * 365 * DAY_MS,
  1e15,
  1e300,
  FOR_EVER,
];

const cases = [
  rule("a record is gone once its lifetime has passed", async (stage) => {
    const backend = await stage.client();
    const records = [sampleEntry(stage.key("record-0")), sampleLease(stage.key("record-1")), sampleStamp()];
    const items = records.map((record, at) => ({
      key: stage.key(`record-${at}`),
      record,
      lifetimeMs: stage.shortMs,
    }));
    const keys = items.map(({ key }) => key);
    await backend.writeMany(items);
    await stage.pass(stage.shortMs);
    assert.deepEqual([...(await backend.readMany(keys))], [undefined, undefined, undefined]);
    for (const key of keys) assert.equal(await backend.read(key), undefined);
    for (const key of keys) assert.equal(await backend.take(key), undefined);
  }),
  rule("a record is present throughout its lifetime, however long that is", async (stage) => {
    const backend = await stage.client();
    const items = LONG_LIFETIMES.map((lifetimeMs, at) => ({
      key: stage.key(`long-${at}`),
      record: sampleEntry(stage.key(`long-${at}`)),
      lifetimeMs,
    }));
    for (const item of items) await backend.write(item);
    await stage.pass(stage.shortMs);
    for (const { key, record, lifetimeMs } of items) {
      assertSameRecord(
        await backend.read(key),
        record,
        `after ${stage.shortMs} of ${lifetimeMs} ms the record`,
      );
    }
  }),
  rule("a lifetime below the store's resolution still ends", async (stage) => {
    const backend = await stage.client();
    const [written, swapped] = [stage.key("written"), stage.key("swapped")];
    await backend.write({ key: written, record: sampleEntry(stage.key("written")), lifetimeMs: 0.4 });
    await backend.swap(swapped, undefined, { record: sampleEntry(stage.key("swapped")), lifetimeMs: 0.4 });
    await stage.pass(1);
    assert.deepEqual([...(await backend.readMany([written, swapped]))], [undefined, undefined]);
  }),
  rule("fractions of a millisecond are rounded, not rejected", async (stage) => {
    const backend = await stage.client();
    const record = sampleEntry(stage.key("fraction"));
    await backend.write({ key: stage.key("fraction"), record, lifetimeMs: 60_000.123_456 });
    assertSameRecord(await backend.read(stage.key("fraction")), record);
  }),
  rule("a write or swap replaces the lifetime, with a longer or a shorter one", async (stage) => {
    const backend = await stage.client();
    // Long enough for the second step to come in time.
    const short = 4 * stage.shortMs;
    const changes = [
      { name: "longer", first: short, next: 60_000 },
      { name: "lasting", first: short, next: FOR_EVER },
      { name: "shorter", first: 60_000, next: short },
      { name: "ending", first: FOR_EVER, next: short },
    ];
    for (const { name, first, next } of changes) {
      const [written, swapped] = [
        sampleEntry(stage.key(`${name}-written`)),
        sampleEntry(stage.key(`${name}-swapped`)),
      ];
      for (const record of [written, swapped]) {
        await backend.write({ key: record.key, record, lifetimeMs: first });
      }
      await backend.write({ key: written.key, record: written, lifetimeMs: next });
      const replacement = { record: swapped, lifetimeMs: next };
      assert.deepEqual(await backend.swap(swapped.key, swapped.version, replacement), {
        won: true,
      });
    }
    await stage.pass(short);
    for (const { name, next } of changes) {
      for (const key of [stage.key(`${name}-written`), stage.key(`${name}-swapped`)]) {
        const present = (await backend.read(key)) !== undefined;
        assert.equal(present, next !== short, `${key} is ${present ? "still there" : "gone"}`);
      }
    }
  }),
  rule("a swap treats an expired record as absent", async (stage) => {
    const backend = await stage.client();
    const [old, lease] = [sampleEntry(stage.key("expired")), sampleLease(stage.key("expired"))];
    await backend.write({ key: stage.key("expired"), record: old, lifetimeMs: stage.shortMs });
    await stage.pass(stage.shortMs);
    const refused = await backend.swap(stage.key("expired"), old.version, {
      record: lease,
      lifetimeMs: FOR_EVER,
    });
    assert.deepEqual(refused, { won: false, current: undefined });
    const won = await backend.swap(stage.key("expired"), undefined, { record: lease, lifetimeMs: FOR_EVER });
    assert.deepEqual(won, { won: true });
    assertSameRecord(await backend.read(stage.key("expired")), lease);
  }),
  rule("reads, touches and refused swaps do not extend a lifetime", async (stage) => {
    const backend = await stage.client();
    const key = stage.key("untouched");
    await backend.write({ key, record: sampleEntry(stage.key("untouched")), lifetimeMs: stage.shortMs });
    await backend.read(key);
    await backend.readMany([key]);
    await backend.touch?.([key]);
    const { won } = await backend.swap(key, undefined, {
      record: sampleEntry(stage.key("untouched")),
      lifetimeMs: FOR_EVER,
    });
    // On a busy machine it may have expired by then.
    if (won) return;
    await stage.pass(stage.shortMs);
    assert.equal(await backend.read(key), undefined);
  }),
  rule("the store's clock advances, with a known error bound", async (stage) => {
    const backend = await stage.client();
    const error = backend.clockErrorMs();
    assert.ok(
      Number.isFinite(error) && error >= 0,
      `clockErrorMs() must be a number of at least 0, got ${error}`,
    );
    const before = backend.now();
    await stage.advance(stage.shortMs);
    const passed = backend.now() - before;
    const slack = 2 * Math.max(error, backend.clockErrorMs()) + 2;
    assert.ok(passed >= stage.shortMs - slack, `now() moved by ${passed} ms in ${stage.shortMs} ms`);
  }),
];

export const lifetimes: ContractGroup = { name: "lifetimes", cases: () => cases };
