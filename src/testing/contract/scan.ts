// Contract cases: listing records by prefix, and their memory usage.
import assert from "node:assert/strict";
import type { Backend, ScanItem, ScanOptions } from "../../core/backend.ts";
import { UnsupportedError } from "../../core/errors.ts";
import { AWKWARD_NAMES } from "./binary-safety.ts";
import { assertSameHead, FOR_EVER, keyedEntry, sampleEntry, sampleLease, sampleStamp } from "./sample.ts";
import { type ContractGroup, rule } from "./stage.ts";

/** The records of a scan by key: a scan may return a record twice. */
async function scanned(
  backend: Backend,
  prefix: string,
  options?: ScanOptions,
): Promise<Map<string, ScanItem>> {
  const items = new Map<string, ScanItem>();
  for await (const batch of backend.scan(prefix, options))
    for (const item of batch) items.set(item.key, item);
  return items;
}

const sorted = (keys: Iterable<string>): string[] => [...keys].sort();

const listing = [
  rule("a scan finds every record under its prefix, of any kind, with its size", async (stage) => {
    const backend = await stage.client();
    const records = [
      sampleEntry(stage.key("entry")),
      sampleLease(stage.key("lease"), { behind: sampleEntry(stage.key("lease")) }),
      sampleStamp(),
    ];
    const items = records.map((record) => ({ key: stage.key(record.kind), record, lifetimeMs: FOR_EVER }));
    await backend.writeMany(items);
    const found = await scanned(backend, stage.prefix);
    assert.deepEqual(sorted(found.keys()), sorted(items.map(({ key }) => key)));
    for (const { key, record } of items) {
      assertSameHead(found.get(key)?.record, record, key);
      assert.ok((found.get(key)?.bytes ?? -1) >= 0, `bytes of ${key}`);
    }
  }),
  rule("a scan of a prefix without records finds nothing", async (stage) => {
    const backend = await stage.client();
    assert.equal((await scanned(backend, stage.prefix)).size, 0);
  }),
  rule("a scan returns keys of any characters as they were written", async (stage) => {
    const backend = await stage.client();
    const items = AWKWARD_NAMES.map((name) => keyedEntry(stage.prefix, name));
    await backend.writeMany(items);
    const found = await scanned(backend, stage.key(""));
    assert.deepEqual(sorted(found.keys()), sorted(items.map(({ key }) => key)));
  }),
  rule("a prefix is matched literally, including glob characters", async (stage) => {
    const backend = await stage.client();
    const decoys = ["", "a", "ab", "aa", "x", "**", "??", "\\\\", "^a", "a-z"];
    for (const part of ["[", "[ab]", "*", "?", "\\", "\\*", "[^a]", "{a,b}", "a*b", "[a-", "]"]) {
      const inside = [keyedEntry(stage.prefix, `${part}1`), keyedEntry(stage.prefix, `${part}2`)];
      const outside = decoys.map((decoy) => keyedEntry(stage.prefix, `${decoy}1`));
      await backend.writeMany([...outside, ...inside]);
      const found = sorted((await scanned(backend, stage.key(part))).keys());
      assert.ok(
        found.every((key) => key.startsWith(stage.key(part))),
        `${part} found ${JSON.stringify(found)}`,
      );
      for (const { key } of inside) assert.ok(found.includes(key), `${part} missed ${key}`);
    }
  }),
  rule("a prefix matches longer names but not siblings", async (stage) => {
    const backend = await stage.client();
    await backend.writeMany(
      ["app", "app2", "app:1", "ap", "bapp", "App"].map((name) => keyedEntry(stage.prefix, name)),
    );
    const found = await scanned(backend, stage.key("app"));
    assert.deepEqual(sorted(found.keys()), sorted(["app", "app2", "app:1"].map((name) => stage.key(name))));
  }),
  rule("a scan omits expired and removed records", async (stage) => {
    const backend = await stage.client();
    const [kept, gone] = [keyedEntry(stage.prefix, "kept"), keyedEntry(stage.prefix, "gone")];
    const passing = { ...keyedEntry(stage.prefix, "passing"), lifetimeMs: stage.shortMs };
    await backend.writeMany([kept, gone, passing]);
    await backend.take(gone.key);
    await stage.pass(stage.shortMs);
    assert.deepEqual([...(await scanned(backend, stage.prefix)).keys()], [kept.key]);
  }),
];

const underway = [
  rule("a scan sees every record that is present throughout, despite concurrent changes", async (stage) => {
    const backend = await stage.client();
    const lasting = Array.from({ length: 500 }, (_, at) => keyedEntry(stage.prefix, `lasting-${at}`));
    const passing = Array.from({ length: 200 }, (_, at) => keyedEntry(stage.prefix, `passing-${at}`));
    await backend.writeMany(lasting.flatMap((item, at) => (at < 200 ? [item, passing[at] ?? item] : [item])));
    const seen = new Set<string>();
    let round = 0;
    for await (const batch of backend.scan(stage.prefix)) {
      for (const { key } of batch) seen.add(key);
      if (round < 40) {
        await backend.takeMany(passing.slice(round * 5, round * 5 + 5).map(({ key }) => key));
        await backend.writeMany(
          Array.from({ length: 5 }, (_, at) => keyedEntry(stage.prefix, `late-${round * 5 + at}`)),
        );
      }
      round++;
    }
    const missed = lasting.filter(({ key }) => !seen.has(key));
    assert.equal(missed.length, 0, `${missed.length} of 500 records were missed, ${missed[0]?.key} first`);
  }),
  rule("concurrent scans do not interfere", async (stage) => {
    const backend = await stage.client();
    const [some, others] = ["some", "others"].map((kind) =>
      Array.from({ length: 100 }, (_, at) => keyedEntry(stage.prefix, `${kind}-${at}`)),
    );
    assert.ok(some && others);
    await backend.writeMany([...some, ...others]);
    const [first, second] = await Promise.all([
      scanned(backend, stage.key("some-")),
      scanned(backend, stage.key("others-")),
    ]);
    assert.deepEqual(sorted(first.keys()), sorted(some.map(({ key }) => key)));
    assert.deepEqual(sorted(second.keys()), sorted(others.map(({ key }) => key)));
  }),
  rule("a scan may be abandoned, and the backend keeps working", async (stage) => {
    const backend = await stage.client();
    const items = Array.from({ length: 300 }, (_, at) => keyedEntry(stage.prefix, `left-${at}`));
    await backend.writeMany(items);
    for await (const batch of backend.scan(stage.prefix)) if (batch.length > 0) break;
    assert.equal((await scanned(backend, stage.prefix)).size, items.length);
  }),
  rule("an aborted scan returns no further batch", async (stage) => {
    const backend = await stage.client();
    await backend.writeMany(
      Array.from({ length: 2_000 }, (_, at) => keyedEntry(stage.prefix, `aborted-${at}`)),
    );
    const beforehand = await batchesUntilAbort(backend, stage.prefix, 0);
    assert.equal(beforehand, 0, "a scan that was aborted before it began gave a batch");
    const between = await batchesUntilAbort(backend, stage.prefix, 1);
    assert.ok(between <= 1, `${between - 1} batches came after the abort`);
  }),
];

/** The number of batches from a scan that is aborted after `limit` of them. It may end or reject. */
async function batchesUntilAbort(backend: Backend, prefix: string, limit: number): Promise<number> {
  const stop = new AbortController();
  if (limit === 0) stop.abort();
  let batches = 0;
  try {
    for await (const _ of backend.scan(prefix, { signal: stop.signal })) {
      batches++;
      if (batches >= limit) stop.abort();
    }
  } catch (error) {
    assert.ok(stop.signal.aborted, `the scan failed: ${error}`);
  }
  return batches;
}

const usage = rule("usage covers only the records under its prefix", async (stage) => {
  const backend = await stage.client();
  const payload = { format: 0, bytes: new Uint8Array(1_000) };
  const items = Array.from({ length: 20 }, (_, at) => keyedEntry(stage.prefix, `used-${at}`, { payload }));
  await backend.writeMany([...items, keyedEntry(stage.prefix, "other")]);
  const full = await backend.usage(stage.key("used-"));
  assert.ok(full.keys >= 0 && full.bytes >= 0, JSON.stringify(full));
  if (!full.approximate) {
    assert.equal(full.keys, 20);
    assert.ok(full.bytes >= 20_000, `20 payloads of 1,000 bytes are said to take ${full.bytes} bytes`);
  }
  await backend.takeMany(items.map(({ key }) => key));
  const empty = await backend.usage(stage.key("used-"));
  if (!empty.approximate) assert.deepEqual({ keys: empty.keys, bytes: empty.bytes }, { keys: 0, bytes: 0 });
});

const refusals = [
  rule("a store that cannot list keys throws UnsupportedError", async (stage) => {
    const backend = await stage.client();
    await assert.rejects(scanned(backend, stage.prefix), UnsupportedError);
  }),
  rule("a store that cannot list keys does not make up their usage", async (stage) => {
    const backend = await stage.client();
    const usage = await backend.usage(stage.prefix).catch((error: unknown) => error);
    if (usage instanceof Error) assert.ok(usage instanceof UnsupportedError, `usage rejected with ${usage}`);
    else assert.equal((usage as { approximate: boolean }).approximate, true);
  }),
];

export const scanning: ContractGroup = {
  name: "scan and usage",
  cases: ({ scan }) => (scan ? [...listing, ...underway, usage] : refusals),
};
