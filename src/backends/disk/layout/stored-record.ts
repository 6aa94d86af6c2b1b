// The stored form of a record: its expiry, its write time, its index rows if they are those of an earlier record, its
// full key if that was hashed, and its frame.
//
//   0      flags: 1 a full key, 2 evicted last, 4 rows of an earlier record
//   1..6   expiry in milliseconds; all bits set: never
//   7..12  write time
//   then   what its rows say (when a flag says so): expiry, write time, version
//   then   the full key (when a flag says so): 4 bytes of length, its bytes
//   rest   the frame; see core/frame/frame.ts
import type { KeyedRecord, RecordHead } from "../../../core/backend.ts";
import { CodecError } from "../../../core/errors.ts";
import {
  decodeHead,
  decodeHeader,
  decodeRecord,
  INCOMPLETE,
  RecordBytes,
  VERSION_OFFSET,
} from "../../../core/frame/frame.ts";
import { TIME_LENGTH, TOKEN_LENGTH, timeAt, tokenAt } from "../../../core/frame/frame-fields.ts";
import { writeTime, writeToken } from "../../../core/frame/frame-writer.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { keyOfBytes } from "../../wire/key-bytes.ts";
import { AREA, type DiskKey, fullKeyBytes, isHashed, keyOfPlain } from "./disk-key.ts";

const FLAG = { fullKey: 1, evictedLast: 2, earlierRows: 4 } as const;
const EXPIRES_AT = 1;
const WRITTEN_AT = 7;
const HEAD = 13;
const ROWS_BYTES = 2 * TIME_LENGTH + TOKEN_LENGTH;
const LENGTH_BYTES = 4;

/** Of a record, to be read for its header: covers nearly every one. A longer header is read with this many times as much. */
export const HEADER_BYTES = 512;
export const HEADER_GROWTH = 16;

/** Moving the rows of a record writes it again, so that only a record of a page or less keeps those of an earlier one. */
const LARGEST_MOVED = 4_096;

/** Also the latest time that fits into six bytes. */
export const NEVER = 2 ** 48 - 1;

/** What the index rows of a record say. */
export interface RowFields {
  /** When it expires, or NEVER. */
  readonly expiresAt: number;
  readonly writtenAt: number;
  readonly version: Token;
}

/** What is known of a record without decoding its frame. */
export interface RecordMeta extends RowFields {
  /** Stamps and leases: losing one costs more than a miss. */
  readonly evictedLast: boolean;
  /** What its rows say: the same, or what held for an earlier record under its key. */
  readonly rows: RowFields;
}

export interface Encoded extends RecordMeta {
  readonly bytes: Buffer;
}

/** `replaced`: the record before, if its rows may be kept. */
export function encodeStored(
  diskKey: DiskKey,
  { key, record, lifetimeMs }: KeyedRecord,
  now: number,
  replaced?: RecordMeta,
): Encoded {
  const frame = new RecordBytes(record);
  const full = isHashed(diskKey) ? fullKeyBytes(key) : undefined;
  const { version } = record;
  const evictedLast = record.kind !== "entry";
  const writtenAt = Math.floor(now);
  // Rounded down: a copy may only expire early.
  const expiresAt = Math.min(NEVER, Math.floor(now + lifetimeMs));
  const keepsRows =
    replaced !== undefined &&
    replaced.evictedLast === evictedLast &&
    frame.length <= LARGEST_MOVED &&
    replaced.rows.version !== version &&
    canKeep(replaced.rows, expiresAt, writtenAt);
  const bytes = Buffer.allocUnsafe(
    HEAD +
      (keepsRows ? ROWS_BYTES : 0) +
      (full === undefined ? 0 : LENGTH_BYTES + full.length) +
      frame.length,
  );
  bytes[0] =
    (full === undefined ? 0 : FLAG.fullKey) |
    (evictedLast ? FLAG.evictedLast : 0) |
    (keepsRows ? FLAG.earlierRows : 0);
  writeTime(bytes, EXPIRES_AT, expiresAt);
  writeTime(bytes, WRITTEN_AT, writtenAt);
  let at = HEAD;
  if (keepsRows) {
    at = writeTime(bytes, at, replaced.rows.expiresAt);
    at = writeTime(bytes, at, replaced.rows.writtenAt);
    at = writeToken(bytes, at, replaced.rows.version);
  }
  if (full !== undefined) {
    at = bytes.writeUInt32BE(full.length, at);
    bytes.set(full, at);
    at += full.length;
  }
  frame.writeTo(bytes, at);
  const rows = keepsRows ? replaced.rows : { expiresAt, writtenAt, version };
  return { bytes, expiresAt, writtenAt, evictedLast, version, rows };
}

/** Whether these rows find a record in time, and not so early that the sweep would soon have to move them. */
function canKeep(rows: RowFields, expiresAt: number, now: number): boolean {
  if (rows.writtenAt > now) return false;
  if (rows.expiresAt === NEVER || expiresAt === NEVER) return rows.expiresAt === expiresAt;
  return rows.expiresAt <= expiresAt && rows.expiresAt - now >= (expiresAt - now) / 2;
}

/** The same record with rows of its own. `bytes`: of a record that has those of an earlier one. */
export function withOwnRows(bytes: Buffer, meta: RecordMeta): Encoded {
  const own = Buffer.allocUnsafe(bytes.length - ROWS_BYTES);
  bytes.copy(own, 0, 0, HEAD);
  bytes.copy(own, HEAD, HEAD + ROWS_BYTES);
  own[0] = (own[0] as number) & ~FLAG.earlierRows;
  const { expiresAt, writtenAt, version } = meta;
  return { ...meta, bytes: own, rows: { expiresAt, writtenAt, version } };
}

/** The expiry of the record in these bytes. Throws CodecError. */
export function expiryOf(bytes: Buffer): number {
  if (bytes.length < HEAD) throw damaged();
  return timeAt(bytes, EXPIRES_AT);
}

/** As `expiryOf`, for bytes in LMDB's memory map. */
export const expiryIn = (bytes: Uint8Array): number => timeAt(bytes, EXPIRES_AT);

/** The version of a record in the plain area, for bytes in LMDB's memory map. */
export const versionIn = (bytes: Uint8Array): Token => tokenAt(bytes, keyStart(bytes) + VERSION_OFFSET);

/** Throws CodecError. */
export function metaOf(bytes: Buffer): RecordMeta {
  const meta = metaIn(bytes);
  if (meta === undefined) throw damaged();
  return meta;
}

/**
 * As `metaOf`; undefined for nothing or a damaged record, which may be overwritten or removed. `size`: of the record, for
 * bytes in LMDB's memory map.
 */
export function metaIn(bytes: Uint8Array | undefined, size = bytes?.length ?? 0): RecordMeta | undefined {
  if (bytes === undefined || size < HEAD + LENGTH_BYTES) return undefined;
  const flags = bytes[0] as number;
  const start = keyStart(bytes);
  if (size < start + LENGTH_BYTES) return undefined;
  const versionAt = ((flags & FLAG.fullKey) === 0 ? start : keyEnd(bytes, start)) + VERSION_OFFSET;
  if (versionAt + TOKEN_LENGTH > size) return undefined;
  const expiresAt = timeAt(bytes, EXPIRES_AT);
  const writtenAt = timeAt(bytes, WRITTEN_AT);
  const version = tokenAt(bytes, versionAt);
  const rows = (flags & FLAG.earlierRows) === 0 ? { expiresAt, writtenAt, version } : earlierRowsIn(bytes);
  return { expiresAt, writtenAt, evictedLast: (flags & FLAG.evictedLast) !== 0, version, rows };
}

function earlierRowsIn(bytes: Uint8Array): RowFields {
  return {
    expiresAt: timeAt(bytes, HEAD),
    writtenAt: timeAt(bytes, HEAD + TIME_LENGTH),
    version: tokenAt(bytes, HEAD + 2 * TIME_LENGTH),
  };
}

/** Where the full key begins, or the frame if there is none. */
const keyStart = (bytes: Uint8Array): number =>
  ((bytes[0] as number) & FLAG.earlierRows) === 0 ? HEAD : HEAD + ROWS_BYTES;

/** Where the full key ends that begins there. */
function keyEnd(bytes: Uint8Array, start: number): number {
  let length = 0;
  for (let at = start; at < start + LENGTH_BYTES; at++) length = length * 256 + (bytes[at] as number);
  return start + LENGTH_BYTES + length;
}

/** The record; undefined if it belongs to another key with the same hash. Throws CodecError. */
export function decodeStored(bytes: Buffer, key: string): StoreRecord | undefined {
  const start = frameStart(bytes);
  if (((bytes[0] as number) & FLAG.fullKey) !== 0 && fullKey(bytes) !== key) return undefined;
  return decodeRecord(bytes, key, start);
}

/** As `decodeStored`, from the first bytes; INCOMPLETE if they end within the header. `size`: of all of them. */
export function decodeStoredHead(
  bytes: Buffer,
  key: string,
  size = bytes.length,
): RecordHead | undefined | typeof INCOMPLETE {
  const start = frameStart(bytes, size);
  if (start >= bytes.length) return INCOMPLETE;
  if (((bytes[0] as number) & FLAG.fullKey) !== 0 && fullKey(bytes) !== key) return undefined;
  const head = decodeHead(bytes.subarray(start), key, size - start);
  if (head === INCOMPLETE && bytes.length >= size) throw damaged();
  return head;
}

/** The cache key and the record, without its payload, from the first bytes; INCOMPLETE if they end within the header. */
export function decodeStoredHeader(
  diskKey: Buffer,
  bytes: Buffer,
  size: number,
): { readonly key: string; readonly record: StoreRecord | undefined } | typeof INCOMPLETE {
  const start = frameStart(bytes, size);
  if (start >= bytes.length) return INCOMPLETE;
  const key = storedKey(diskKey, bytes);
  const record = decodeHeader(bytes.subarray(start), key);
  if (record !== INCOMPLETE) return { key, record };
  if (bytes.length >= size) throw damaged();
  return INCOMPLETE;
}

/** The cache key of a record, from its disk key and the bytes stored there. */
export function storedKey(diskKey: Buffer, bytes: Buffer): string {
  return diskKey[0] === AREA.hashed ? fullKey(bytes) : keyOfPlain(diskKey);
}

/** The key of a record stored under a hash. */
const fullKey = (bytes: Buffer): string =>
  keyOfBytes(bytes.subarray(keyStart(bytes) + LENGTH_BYTES, frameStart(bytes)));

/** `size`: of the whole record, where `bytes` are its beginning. */
function frameStart(bytes: Buffer, size = bytes.length): number {
  if (bytes.length < HEAD + LENGTH_BYTES) throw damaged();
  const start = keyStart(bytes);
  if (bytes.length < start + LENGTH_BYTES) throw damaged();
  if (((bytes[0] as number) & FLAG.fullKey) === 0) return start;
  const end = keyEnd(bytes, start);
  if (end >= size) throw damaged();
  return end;
}

function damaged(): CodecError {
  return new CodecError("FRAME_INVALID", "a stored record is damaged: it is shorter than its frame");
}

/**
 * The number that LMDB compares before it changes a record: 53 of the 64 random bits of the version. All 64 were compared
 * in the snapshot that the change is based on.
 */
export function comparable(version: Token): number {
  let high = 0;
  let low = 0;
  for (let at = 0; at < 3; at++) high = high * 256 + (version.charCodeAt(at) & 0xff);
  for (let at = 3; at < 7; at++) low = low * 256 + (version.charCodeAt(at) & 0xff);
  return (high & 0x1fffff) * 2 ** 32 + low;
}
