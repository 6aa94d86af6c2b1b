// Contract cases: records read back as they were written, singly and in batches.
import assert from "node:assert/strict";
import {
  assertSameHead,
  assertSameRecord,
  FOR_EVER,
  keyedEntry,
  sampleEntry,
  sampleLease,
  sampleStamp,
} from "./sample.ts";
import { type ContractGroup, rule, type Stage } from "./stage.ts";

/** Versions that a store would damage if it trimmed or decoded them, or compared them as text. */
const AWKWARD_VERSIONS = [
  "\0\0\0\0\0\0\0\0",
  "\xff\xff\xff\xff\xff\xff\xff\xff",
  "\0\xff\0\xff\r\n\0\xff",
  "        ",
  "\r\n\r\n\r\n\r\n",
  "\x80\x81\xc3\x28\xe2\x82\xf0\x9f",
  "12345678",
];

const AWKWARD_TAGS = [
  "a b",
  "a\r\nb",
  "a\0b",
  "ä",
  "😀",
  "{tag}",
  "!t:tag",
  "*",
  "x".repeat(1_000),
  "__proto__",
];

const manyEntries = (stage: Stage, count: number) =>
  Array.from({ length: count }, (_, at) => keyedEntry(stage.prefix, `many-${at}`));

const roundTrips = [
  rule("an entry reads back exactly as it was written", async (stage) => {
    const backend = await stage.client();
    const entry = sampleEntry(stage.key("entry"), {
      namespaceStamps: ["\0parent\0", "\xff\xfechild\r"],
      tags: AWKWARD_TAGS.map((tag, at) => ({ tag, id: `\0\xffid${String(at).padStart(4, "0")}` })),
      expires: FOR_EVER,
      staleUntil: FOR_EVER,
      payload: { format: 17, bytes: Uint8Array.of(0, 255, 13, 10) },
    });
    await backend.write({ key: stage.key("entry"), record: entry, lifetimeMs: FOR_EVER });
    assertSameRecord(await backend.read(stage.key("entry")), entry);
  }),
  rule("a lease reads back exactly, with and without an entry behind it", async (stage) => {
    const backend = await stage.client();
    const alone = sampleLease(stage.key("alone"));
    const behind = sampleEntry(stage.key("before"), { tags: [{ tag: "a\0b", id: "\0\xff234567" }] });
    const before = sampleLease(stage.key("before"), { behind });
    await backend.write({ key: stage.key("alone"), record: alone, lifetimeMs: FOR_EVER });
    await backend.write({ key: stage.key("before"), record: before, lifetimeMs: FOR_EVER });
    assertSameRecord(await backend.read(stage.key("alone")), alone);
    assertSameRecord(await backend.read(stage.key("before")), before);
  }),
  rule("a stamp reads back exactly, whether it expires or not", async (stage) => {
    const backend = await stage.client();
    const lasting = sampleStamp();
    const passing = sampleStamp({ expires: 1_767_225_600_123 });
    await backend.write({ key: stage.key("lasting"), record: lasting, lifetimeMs: FOR_EVER });
    await backend.write({ key: stage.key("passing"), record: passing, lifetimeMs: 60_000 });
    assertSameRecord(await backend.read(stage.key("lasting")), lasting);
    assertSameRecord(await backend.read(stage.key("passing")), passing);
  }),
  rule("versions of any eight bytes are stored and distinguished", async (stage) => {
    const backend = await stage.client();
    for (const version of AWKWARD_VERSIONS) {
      const [key, record] = [stage.key("version"), sampleStamp({ version })];
      await backend.write({ key, record, lifetimeMs: FOR_EVER });
      assertSameRecord(await backend.read(key), record);
      for (const other of AWKWARD_VERSIONS) {
        if (other === version) continue;
        const result = await backend.swap(key, other, undefined);
        assert.equal(result.won, false, `${JSON.stringify(other)} was taken for ${JSON.stringify(version)}`);
      }
      assert.deepEqual(await backend.swap(key, version, undefined), { won: true });
    }
  }),
];

const singles = [
  rule("an absent key reads as undefined", async (stage) => {
    const backend = await stage.client();
    assert.equal(await backend.read(stage.key("absent")), undefined);
    assert.equal(await backend.take(stage.key("absent")), undefined);
  }),
  rule("a write replaces a record of any kind", async (stage) => {
    const backend = await stage.client();
    const key = stage.key("replaced");
    for (const record of [
      sampleEntry(stage.key("replaced")),
      sampleLease(stage.key("replaced")),
      sampleStamp(),
      sampleEntry(stage.key("replaced")),
    ]) {
      await backend.write({ key, record, lifetimeMs: FOR_EVER });
      assertSameRecord(await backend.read(key), record);
    }
  }),
  rule("take removes a record and returns it", async (stage) => {
    const backend = await stage.client();
    const item = keyedEntry(stage.prefix, "taken", { tags: [{ tag: "tag", id: "12345678" }] });
    await backend.write(item);
    assertSameHead(await backend.take(item.key), item.record);
    assert.equal(await backend.read(item.key), undefined);
    assert.equal(await backend.take(item.key), undefined);
  }),
  rule("of many concurrent takes exactly one gets the record", async (stage) => {
    const backend = await stage.client();
    const item = keyedEntry(stage.prefix, "contested");
    await backend.write(item);
    const taken = await Promise.all(Array.from({ length: 20 }, () => backend.take(item.key)));
    assert.equal(taken.filter((record) => record !== undefined).length, 1);
  }),
  rule("touch does not change records", async (stage) => {
    const backend = await stage.client();
    const item = keyedEntry(stage.prefix, "touched");
    await backend.write(item);
    await backend.touch?.([item.key, stage.key("absent")]);
    assertSameRecord(await backend.read(item.key), item.record);
    assert.equal(await backend.read(stage.key("absent")), undefined);
  }),
];

const batches = [
  rule(
    "readMany returns records in the order of its keys, including absent and repeated ones",
    async (stage) => {
      const backend = await stage.client();
      const [a, b, c] = ["a", "b", "c"].map((name) => keyedEntry(stage.prefix, name));
      assert.ok(a && b && c);
      await backend.writeMany([c, a, b]);
      const absent = stage.key("absent");
      const records = await backend.readMany([b.key, absent, a.key, c.key, a.key]);
      assert.equal(records.length, 5);
      for (const [at, item] of [b, undefined, a, c, a].entries()) {
        if (item === undefined) assert.equal(records[at], undefined);
        else assertSameRecord(records[at], item.record, `record ${at}`);
      }
    },
  ),
  rule("takeMany removes its keys and returns the records in their order", async (stage) => {
    const backend = await stage.client();
    const items = ["a", "b", "c", "kept"].map((name) => keyedEntry(stage.prefix, name));
    const [a, b, c, kept] = items;
    assert.ok(a && b && c && kept);
    await backend.writeMany(items);
    const taken = await backend.takeMany([c.key, stage.key("absent"), a.key, b.key]);
    assert.equal(taken.length, 4);
    for (const [at, item] of [c, undefined, a, b].entries()) {
      if (item === undefined) assert.equal(taken[at], undefined);
      else assertSameHead(taken[at], item.record, `record ${at}`);
    }
    const left = await backend.readMany(items.map(({ key }) => key));
    assert.deepEqual(
      left.map((record) => record?.version),
      [undefined, undefined, undefined, kept.record.version],
    );
  }),
  rule("removeMany, if implemented, removes its keys and no others", async (stage) => {
    const backend = await stage.client();
    const items = ["a", "b", "kept"].map((name) => keyedEntry(stage.prefix, name));
    const [a, b, kept] = items;
    assert.ok(a && b && kept);
    await backend.writeMany(items);
    await backend.removeMany?.([]);
    const gone = [b.key, stage.key("absent"), a.key];
    await (backend.removeMany?.(gone) ?? backend.takeMany(gone));
    const left = await backend.readMany(items.map(({ key }) => key));
    assert.deepEqual(
      left.map((record) => record?.version),
      [undefined, undefined, kept.record.version],
    );
  }),
  rule("batches of 0 and of 1,000 keys work", async (stage) => {
    const backend = await stage.client();
    await backend.writeMany([]);
    assert.deepEqual([...(await backend.readMany([]))], []);
    assert.deepEqual([...(await backend.takeMany([]))], []);
    const items = manyEntries(stage, 1_000);
    const keys = items.map(({ key }) => key);
    const versions = items.map(({ record }) => record.version);
    await backend.writeMany(items);
    assert.deepEqual(
      (await backend.readMany(keys)).map((record) => record?.version),
      versions,
    );
    assert.deepEqual(
      (await backend.takeMany(keys)).map((record) => record?.version),
      versions,
    );
    assert.ok((await backend.readMany(keys)).every((record) => record === undefined));
  }),
  rule("a batch may mix records of any kind and lifetime", async (stage) => {
    const backend = await stage.client();
    const items = [
      { key: stage.key("entry"), record: sampleEntry(stage.key("entry")), lifetimeMs: 60_000 },
      { key: stage.key("lease"), record: sampleLease(stage.key("lease")), lifetimeMs: 90_000.5 },
      { key: stage.key("stamp"), record: sampleStamp(), lifetimeMs: FOR_EVER },
    ];
    await backend.writeMany(items);
    const records = await backend.readMany(items.map(({ key }) => key));
    for (const [at, { record }] of items.entries()) assertSameRecord(records[at], record);
  }),
];

export const exchange: ContractGroup = {
  name: "records",
  cases: () => [...roundTrips, ...singles, ...batches],
};

/** Visibility between clients of the same store. */
export const sharing: ContractGroup = {
  name: "clients of one store",
  cases: ({ shared }) => (shared ? [seesWrites, seesRemovals] : []),
};

const seesWrites = rule("one client immediately reads what another wrote", async (stage) => {
  const [backend, second] = [await stage.client(), await stage.second()];
  for (let round = 0; round < 10; round++) {
    const item = keyedEntry(stage.prefix, "shared");
    await (round % 2 === 0 ? second : backend).write(item);
    assertSameRecord(await backend.read(item.key), item.record, `round ${round}, first client`);
    assertSameRecord((await second.readMany([item.key]))[0], item.record, `round ${round}, second client`);
  }
});

const seesRemovals = rule(
  "a record removed by one client is immediately absent for another",
  async (stage) => {
    const [backend, second] = [await stage.client(), await stage.second()];
    const item = keyedEntry(stage.prefix, "removed");
    await backend.write(item);
    assertSameRecord(await second.read(item.key), item.record);
    assertSameHead(await backend.take(item.key), item.record);
    assert.equal(await second.read(item.key), undefined);
    assert.deepEqual(await second.swap(item.key, item.record.version, undefined), {
      won: false,
      current: undefined,
    });
  },
);
