// Sample records for the contract cases, and assertions that compare records.
import assert from "node:assert/strict";
import type { KeyedRecord } from "../../core/backend.ts";
import { systemClock } from "../../core/clock.ts";
import type { Entry, Lease, Payload, Stamp, StoreRecord } from "../../core/record.ts";

export const FOR_EVER = Number.POSITIVE_INFINITY;

/** An arbitrary time: stores do not interpret the times in records. */
const SOME_TIME = 1_767_225_600_000;

export function sampleEntry(key: string, parts: Partial<Entry> = {}): Entry {
  return {
    kind: "entry",
    version: systemClock.token(),
    key,
    namespaceStamps: [systemClock.token()],
    tags: [],
    created: SOME_TIME,
    expires: SOME_TIME + 60_000,
    staleUntil: SOME_TIME + 90_000,
    payload: { format: 0, bytes: Uint8Array.of(1, 2, 3) },
    ...parts,
  };
}

export function sampleLease(key: string, parts: Partial<Lease> = {}): Lease {
  return {
    kind: "lease",
    version: systemClock.token(),
    key,
    namespaceStamps: [systemClock.token(), systemClock.token()],
    tags: [{ tag: "tag", id: systemClock.token() }],
    expires: SOME_TIME + 6_000,
    ...parts,
  };
}

export function sampleStamp(parts: Partial<Stamp> = {}): Stamp {
  return { kind: "stamp", version: systemClock.token(), expires: FOR_EVER, ...parts };
}

/** An entry with the key `${prefix}:${name}`, as the core would write it. */
export function keyedEntry(prefix: string, name: string, parts: Partial<Entry> = {}): KeyedRecord {
  return { key: `${prefix}:${name}`, record: sampleEntry(`${prefix}:${name}`, parts), lifetimeMs: FOR_EVER };
}

export function assertSameRecord(
  actual: StoreRecord | undefined,
  expected: StoreRecord,
  what = "the record",
): void {
  assert.ok(actual, `${what} is absent`);
  // Payloads first: a difference is reported by size, without printing large payloads.
  const [payload, wanted] = [payloadOf(actual), payloadOf(expected)];
  const same =
    payload !== undefined && wanted !== undefined && Buffer.compare(payload.bytes, wanted.bytes) === 0;
  const sizes = `${payload?.bytes.length} payload bytes are not the ${wanted?.bytes.length} written`;
  assert.ok(same || payload === wanted, `${what}: ${sizes}`);
  assert.equal(payload?.format, wanted?.format, `${what}: payload format`);
  assertSameHead(actual, expected, what);
}

/** Like `assertSameRecord`, for records that may lack their payload. */
export function assertSameHead(
  actual: StoreRecord | undefined,
  expected: StoreRecord,
  what = "the record",
): void {
  assert.ok(actual, `${what} is absent`);
  assert.deepStrictEqual(headOf(actual), headOf(expected), what);
}

function payloadOf(record: StoreRecord): Payload | undefined {
  if (record.kind === "entry") return record.payload;
  return record.kind === "lease" ? record.behind?.payload : undefined;
}

function headOf(record: StoreRecord): object {
  if (record.kind === "stamp") {
    return { kind: record.kind, version: record.version, expires: record.expires };
  }
  const { kind, version, key, namespaceStamps, expires } = record;
  const tags = record.tags.map(({ tag, id }) => ({ tag, id }));
  const shared = { kind, version, key, namespaceStamps: [...namespaceStamps], tags, expires };
  if (record.kind === "lease") {
    return { ...shared, behind: record.behind === undefined ? undefined : headOf(record.behind) };
  }
  return { ...shared, created: record.created, staleUntil: record.staleUntil };
}
