// Contract cases: keys of any characters and payloads of any bytes are stored exactly.
import assert from "node:assert/strict";
import { XCacheError } from "../../core/errors.ts";
import { MAX_KEY_BYTES } from "../../core/keys.ts";
import { assertSameRecord, FOR_EVER, keyedEntry } from "./sample.ts";
import { type ContractGroup, rule } from "./stage.ts";

/** Names that a store, a protocol or an object used as a map might confuse or reject. */
export const AWKWARD_NAMES: readonly string[] = [
  ..."a b|a_b|a  b|a\tb|a+b|a%20b| a|a | |A|a|ä|a\u0308|ß|ss|漢字|😀|\u200b|\ufeff|\uffff".split("|"),
  ..."a\nb|a\r\nb|a\rb|a\0b|\0|\x7f|\x1b[0m|x\r\nset y 0 0 1\r\nz\r\n".split("|"),
  ..."{a}|{}|a{b}c|}a{|[a]|[|]|*|?|\\|a\\|\\*|^|$1|%|%3a|a:b|a!b|a/b|:|!|/|!n|!t:tag|..|../a".split("|"),
  ..."\"|'|`|;|--|<a>|&amp;|$\x7ba}|%s|__proto__|constructor|hasOwnProperty|0|-0|00|null|undefined".split(
    "|",
  ),
];

const KIBIBYTE = 1024;

const keys = [
  rule("keys of any characters are distinct and come back unchanged", async (stage) => {
    const backend = await stage.client();
    const items = AWKWARD_NAMES.map((name) => keyedEntry(stage.prefix, name));
    assert.equal(new Set(AWKWARD_NAMES).size, AWKWARD_NAMES.length);
    for (const item of items) await backend.write(item);
    for (const { key, record } of items)
      assertSameRecord(await backend.read(key), record, JSON.stringify(key));
    const records = await backend.readMany(items.map(({ key }) => key));
    for (const [at, { key, record }] of items.entries())
      assertSameRecord(records[at], record, JSON.stringify(key));
  }),
  rule("taking one awkward key leaves all others", async (stage) => {
    const backend = await stage.client();
    const items = AWKWARD_NAMES.map((name) => keyedEntry(stage.prefix, name));
    await backend.writeMany(items);
    for (const [at, { key, record }] of items.entries()) {
      assert.equal((await backend.take(key))?.version, record.version, JSON.stringify(key));
      const left = await backend.readMany(items.map((item) => item.key));
      const present = left.filter((found) => found !== undefined).length;
      assert.equal(present, items.length - at - 1, `after ${JSON.stringify(key)} was taken`);
    }
  }),
  rule("keys of 64 KiB work and are distinguished by every character", async (stage) => {
    const backend = await stage.client();
    const long = "k".repeat(MAX_KEY_BYTES - 1);
    const names = [`${long}a`, `${long}b`, `a${long}`, `b${long}`, "漢".repeat(MAX_KEY_BYTES / 3), long];
    const items = names.map((name) => keyedEntry(stage.prefix, name));
    await backend.writeMany(items);
    const records = await backend.readMany(items.map(({ key }) => key));
    for (const [at, { record }] of items.entries()) assertSameRecord(records[at], record, `long key ${at}`);
    const [first] = items;
    assert.ok(first);
    assert.deepEqual(await backend.swap(first.key, first.record.version, undefined), { won: true });
    const left = await backend.readMany(items.map(({ key }) => key));
    assert.deepEqual(
      left.map((record) => record !== undefined),
      [false, true, true, true, true, true],
    );
  }),
];

const payloads = [
  rule("payloads of every byte value come back exactly", async (stage) => {
    const backend = await stage.client();
    const every = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    const singles = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
    const texts = ["\r\n", "\r\nEND\r\n", "\0", "{}", "null"].map((text) => new TextEncoder().encode(text));
    const items = [every, every.toReversed(), ...singles, ...texts].map((bytes, at) =>
      keyedEntry(stage.prefix, `bytes-${at}`, { payload: { format: at % 256, bytes } }),
    );
    await backend.writeMany(items);
    const records = await backend.readMany(items.map(({ key }) => key));
    for (const [at, { record }] of items.entries()) assertSameRecord(records[at], record, `payload ${at}`);
  }),
  rule("an empty payload is a payload", async (stage) => {
    const backend = await stage.client();
    const item = keyedEntry(stage.prefix, "empty", { payload: { format: 0, bytes: new Uint8Array() } });
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
  }),
  rule("a payload of 1 MiB, or of the store's limit, comes back exactly", async (stage) => {
    const backend = await stage.client();
    const size = Math.min(KIBIBYTE * KIBIBYTE, stage.offers.maxPayloadBytes ?? FOR_EVER);
    // Not periodic, so that a misplaced chunk is noticed.
    const bytes = new Uint8Array(size);
    for (let at = 0; at < size; at++) bytes[at] = at * 31 + (at >> 8) * 7;
    const item = keyedEntry(stage.prefix, "large", { payload: { format: 0, bytes } });
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
    assert.deepEqual(await backend.swap(item.key, item.record.version, undefined), { won: true });
  }),
  rule("a view into a larger buffer is stored without the rest of the buffer", async (stage) => {
    const backend = await stage.client();
    const whole = Uint8Array.from({ length: 100 }, (_, at) => at);
    const item = keyedEntry(stage.prefix, "view", { payload: { format: 0, bytes: whole.subarray(40, 50) } });
    await backend.write(item);
    assertSameRecord(await backend.read(item.key), item.record);
  }),
];

const tooLarge = rule(
  "a payload beyond the store's limit is rejected, and the store keeps working",
  async (stage) => {
    const backend = await stage.client();
    const bytes = new Uint8Array(2 * (stage.offers.maxPayloadBytes ?? 0));
    const item = keyedEntry(stage.prefix, "too-large", { payload: { format: 0, bytes } });
    await assert.rejects(stage.until(backend.write(item)), XCacheError);
    assert.equal(await backend.read(item.key), undefined);
    const small = keyedEntry(stage.prefix, "small");
    await backend.write(small);
    assertSameRecord(await backend.read(small.key), small.record);
  },
);

export const binarySafety: ContractGroup = {
  name: "keys and bytes",
  cases: ({ maxPayloadBytes }) => [
    ...keys,
    ...payloads,
    ...(maxPayloadBytes === undefined ? [] : [tooLarge]),
  ],
};
