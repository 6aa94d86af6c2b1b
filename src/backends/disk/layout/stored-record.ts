// The stored form of a record: its expiry, its write time, its full key if that was hashed, and its frame.
//
//   0      flags: 1 a full key follows the times, 2 evicted last
//   1..6   expiry in milliseconds; all bits set: never
//   7..12  write time
//   then   the full key: 4 bytes of length, its bytes
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
import { TOKEN_LENGTH, timeAt, tokenAt } from "../../../core/frame/frame-fields.ts";
import { writeTime } from "../../../core/frame/frame-writer.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { keyOfBytes } from "../../wire/key-bytes.ts";
import { AREA, type DiskKey, fullKeyBytes, isHashed, keyOfPlain } from "./disk-key.ts";

const FLAG = { fullKey: 1, evictedLast: 2 } as const;
const EXPIRES_AT = 1;
const WRITTEN_AT = 7;
const HEAD = 13;
const LENGTH_BYTES = 4;

/** Of a record, to be read for its header: covers nearly every one. A longer header is read with this many times as much. */
export const HEADER_BYTES = 512;
export const HEADER_GROWTH = 16;

/** Also the latest time that fits into six bytes. */
export const NEVER = 2 ** 48 - 1;

/** What is known of a record without decoding its frame. */
export interface RecordMeta {
  /** When it expires, or NEVER. */
  readonly expiresAt: number;
  readonly writtenAt: number;
  /** Stamps and leases: losing one costs more than a miss. */
  readonly evictedLast: boolean;
  readonly version: Token;
}

export interface Encoded extends RecordMeta {
  readonly bytes: Buffer;
}

export function encodeStored(
  diskKey: DiskKey,
  { key, record, lifetimeMs }: KeyedRecord,
  now: number,
): Encoded {
  const frame = new RecordBytes(record);
  const full = isHashed(diskKey) ? fullKeyBytes(key) : undefined;
  const bytes = Buffer.allocUnsafe(
    HEAD + (full === undefined ? 0 : LENGTH_BYTES + full.length) + frame.length,
  );
  const evictedLast = record.kind !== "entry";
  const writtenAt = Math.floor(now);
  // Rounded down: a copy may only expire early.
  const expiresAt = Math.min(NEVER, Math.floor(now + lifetimeMs));
  bytes[0] = (full === undefined ? 0 : FLAG.fullKey) | (evictedLast ? FLAG.evictedLast : 0);
  writeTime(bytes, EXPIRES_AT, expiresAt);
  writeTime(bytes, WRITTEN_AT, writtenAt);
  let at = HEAD;
  if (full !== undefined) {
    at = bytes.writeUInt32BE(full.length, at);
    bytes.set(full, at);
    at += full.length;
  }
  frame.writeTo(bytes, at);
  return { bytes, expiresAt, writtenAt, evictedLast, version: record.version };
}

/** The expiry of the record in these bytes. Throws CodecError. */
export function expiryOf(bytes: Buffer): number {
  if (bytes.length < HEAD) throw damaged();
  return timeAt(bytes, EXPIRES_AT);
}

/** As `expiryOf`, for bytes in LMDB's memory map. */
export const expiryIn = (bytes: Uint8Array): number => timeAt(bytes, EXPIRES_AT);

/** The version of a record in the plain area, for bytes in LMDB's memory map. */
export const versionIn = (bytes: Uint8Array): Token => tokenAt(bytes, HEAD + VERSION_OFFSET);

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
  const start = (flags & FLAG.fullKey) === 0 ? HEAD : HEAD + LENGTH_BYTES + keyLengthIn(bytes);
  const versionAt = start + VERSION_OFFSET;
  if (versionAt + TOKEN_LENGTH > size) return undefined;
  return {
    expiresAt: timeAt(bytes, EXPIRES_AT),
    writtenAt: timeAt(bytes, WRITTEN_AT),
    evictedLast: (flags & FLAG.evictedLast) !== 0,
    version: tokenAt(bytes, versionAt),
  };
}

function keyLengthIn(bytes: Uint8Array): number {
  let length = 0;
  for (let at = HEAD; at < HEAD + LENGTH_BYTES; at++) length = length * 256 + (bytes[at] as number);
  return length;
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
const fullKey = (bytes: Buffer): string => keyOfBytes(bytes.subarray(HEAD + LENGTH_BYTES, frameStart(bytes)));

/** `size`: of the whole record, where `bytes` are its beginning. */
function frameStart(bytes: Buffer, size = bytes.length): number {
  if (bytes.length < HEAD + LENGTH_BYTES) throw damaged();
  if (((bytes[0] as number) & FLAG.fullKey) === 0) return HEAD;
  const start = HEAD + LENGTH_BYTES + keyLengthIn(bytes);
  if (start >= size) throw damaged();
  return start;
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
