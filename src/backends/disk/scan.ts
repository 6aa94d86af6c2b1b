// Scans the keys of a store in steps and yields to the event loop after each.
import type { ScanItem, ScanPosition, Usage } from "../../core/backend.ts";
import { unknownPosition } from "../../core/errors.ts";
import { nextTurn } from "../../core/event-loop.ts";
import { INCOMPLETE } from "../../core/frame/frame.ts";
import type { StoreRecord } from "../../core/record.ts";
import type { Environment, Range, Row } from "./environment.ts";
import { AREA, type DiskKey, plainPrefix, rangeOf } from "./layout/disk-key.ts";
import { decodeStoredHeader, expiryOf, HEADER_BYTES, HEADER_GROWTH } from "./layout/stored-record.ts";

const STEP = 200;
/** Keys counted per step. */
const COUNTED = 5_000;
/** Records measured to estimate the size of all. */
const SAMPLE = 1_000;
const SAMPLE_BYTES = 64 * 1024 ** 2;
/** Approximate bytes of a record besides its key and value, including its index rows. */
const OVERHEAD_BYTES = 120;

interface Part {
  readonly range: Range;
  /** Whether it also contains keys without the prefix. */
  readonly isMixed: boolean;
}

/** The ranges that contain keys with this prefix. */
function partsFor(prefix: string): readonly Part[] {
  const plain = plainPrefix(prefix);
  const hashed = { range: rangeOf(AREA.hashed, Buffer.alloc(0)), isMixed: true };
  return plain === undefined ? [hashed] : [{ range: rangeOf(AREA.plain, plain), isMixed: false }, hashed];
}

function positionOf(from: string): { readonly part: number; readonly key: Buffer } {
  const [, part, key] = /^([01])\.([\w-]+)$/.exec(from) ?? [];
  if (part === undefined || key === undefined) throw unknownPosition(from);
  return { part: Number(part), key: Buffer.from(key, "base64url") };
}

/** Every record whose key starts with `prefix`, without payloads. */
export async function* scanStore(
  environment: () => Environment,
  prefix: string,
  now: () => number,
  signal: AbortSignal | undefined,
  position: ScanPosition = {},
): AsyncIterable<readonly ScanItem[]> {
  const start = position.from === undefined ? undefined : positionOf(position.from);
  for (const [part, { range }] of partsFor(prefix).entries()) {
    if (start !== undefined && part < start.part) continue;
    let from = part === start?.part ? start.key : undefined;
    for (;;) {
      if (signal?.aborted) return;
      const rows = environment().rows(range, STEP, from, HEADER_BYTES);
      if (rows.length === 0) break;
      from = rows.at(-1)?.key;
      if (from !== undefined) position.at?.(`${part}.${from.toString("base64url")}`);
      const at = now();
      yield rows.flatMap((row) => {
        const { key, record } = headerOf(environment, row);
        if (expiryOf(row.value) <= at || record === undefined || !key.startsWith(prefix)) return [];
        return [{ key, record, bytes: sizeOf(row) }];
      });
      await nextTurn();
    }
  }
}

/** More is read of a record with a long key or many tags; no record if it has been removed meanwhile. */
function headerOf(
  environment: () => Environment,
  { key, value, size }: Row,
): { readonly key: string; readonly record: StoreRecord | undefined } {
  const header = decodeStoredHeader(key, value, size);
  if (header !== INCOMPLETE) return header;
  const longer = environment().head(key as DiskKey, value.length * HEADER_GROWTH);
  return longer === undefined ? { key: "", record: undefined } : headerOf(environment, { key, ...longer });
}

/** The number of keys is exact, except that it includes expired ones; the bytes are extrapolated from a sample. */
export async function storeUsage(environment: () => Environment, prefix: string): Promise<Usage> {
  let keys = 0;
  let bytes = 0;
  for (const part of partsFor(prefix)) {
    const counted = part.isMixed
      ? await countMixed(environment, part.range, prefix)
      : await count(environment, part.range);
    keys += counted.keys;
    bytes += counted.bytes;
  }
  return { keys, bytes, approximate: true };
}

interface Counted {
  readonly keys: number;
  readonly bytes: number;
}

async function count(environment: () => Environment, range: Range): Promise<Counted> {
  const sample = await sampleOf(environment, range);
  let { keys } = sample;
  let from = sample.last;
  while (from !== undefined) {
    await nextTurn();
    const next = environment().keyAfter(range, COUNTED, from);
    keys += next === undefined ? environment().keys(range, COUNTED, from).length : COUNTED;
    from = next;
  }
  return { keys, bytes: keys === 0 ? 0 : Math.round((sample.bytes / sample.keys) * keys) };
}

/** The first records of a range; `last` is undefined if there are no more. */
async function sampleOf(
  environment: () => Environment,
  range: Range,
): Promise<Counted & { readonly last: Buffer | undefined }> {
  let keys = 0;
  let bytes = 0;
  let last: Buffer | undefined;
  while (keys < SAMPLE && bytes < SAMPLE_BYTES) {
    const rows = environment().rows(range, SAMPLE - keys, last, 0);
    if (rows.length === 0) return { keys, bytes, last: undefined };
    last = rows.at(-1)?.key;
    keys += rows.length;
    bytes += rows.reduce((sum, row) => sum + sizeOf(row), 0);
    await nextTurn();
  }
  return { keys, bytes, last };
}

/** Counts one by one: hashed keys are few. */
async function countMixed(environment: () => Environment, range: Range, prefix: string): Promise<Counted> {
  let keys = 0;
  let bytes = 0;
  let from: Buffer | undefined;
  for (;;) {
    const rows = environment().rows(range, STEP, from, HEADER_BYTES);
    if (rows.length === 0) return { keys, bytes };
    from = rows.at(-1)?.key;
    for (const row of rows) {
      if (!headerOf(environment, row).key.startsWith(prefix)) continue;
      keys++;
      bytes += sizeOf(row);
    }
    await nextTurn();
  }
}

const sizeOf = ({ key, size }: Row): number => key.length + size + OVERHEAD_BYTES;
