// Encodes records as bytes. Numbers are big-endian.
//
//   0      format version and kind: 0x91 an entry, 0x92 a lease, 0x93 a stamp
//   1..8   the record's version token
//   9      flags
//   then   created (entries), expires, staleUntil (entries): 6 bytes each, omitted where a flag says so
//          namespace stamps: count, 8 bytes each          (not in stamps)
//          tags: count, each its name and 8 bytes         (when a flag says so)
//          the full key                                   (when a flag says so)
//          the payload's format                           (entries)
//          check: one byte over everything before it
//   rest   the payload of an entry, or the whole frame of the entry behind a lease
//
// Invariant: the first HEAD_LENGTH bytes are the complete kind and version, so a store that can compare a prefix can do
// compare-and-set. Counts and lengths are LEB128. A text is prefixed with its byte length doubled, plus 1 when it is
// UTF-16LE instead of UTF-8, so that names with lone surrogates survive.

import type { RecordHead } from "../backend.ts";
import { PayloadSlice, payloadLength } from "../codec.ts";
import { CodecError } from "../errors.ts";
import type { Entry, Lease, StoreRecord, TagStamp } from "../record.ts";
import { stampListAt, TIME_LENGTH, timeAt, tokenAt } from "./frame-fields.ts";
import { checkOf, FrameReader, invalidFrame } from "./frame-reader.ts";
import {
  tagsLength,
  textLength,
  tokensLength,
  writePayload,
  writeTags,
  writeText,
  writeTime,
  writeToken,
  writeTokens,
} from "./frame-writer.ts";

/** How many leading bytes identify a record: its kind and its version. */
export const HEAD_LENGTH = 9;
/** Where in a frame the version begins; it is 8 bytes long. */
export const VERSION_OFFSET = 1;

// The high half of byte 0. Text lies below it, future formats above it.
const MAJOR = 0x90;
const KIND = { entry: MAJOR | 1, lease: MAJOR | 2, stamp: MAJOR | 3 } as const;

const FLAG = { neverExpires: 1, staleAsExpires: 2, staleForEver: 4, tags: 8, key: 16, behind: 32 } as const;
const STAMP_FLAGS = FLAG.neverExpires;
const LEASE_FLAGS = FLAG.neverExpires | FLAG.tags | FLAG.key | FLAG.behind;
const ENTRY_FLAGS = FLAG.neverExpires | FLAG.staleAsExpires | FLAG.staleForEver | FLAG.tags | FLAG.key;

const NO_TAGS: readonly TagStamp[] = [];
const NO_BYTES = Buffer.alloc(0);

export interface FrameOptions {
  /** Include the full key in the frame, for a store whose own key is a hash of it. Default: false. */
  readonly withKey?: boolean;
}

/** The bytes a store compares to verify that it still holds exactly this record. */
export function headOf(record: StoreRecord): Buffer {
  const head = Buffer.allocUnsafe(HEAD_LENGTH);
  writeHead(head, 0, record);
  return head;
}

/** Times are rounded down to the millisecond. Throws CodecError for an invalid token. */
export function encodeRecord(record: StoreRecord, options: FrameOptions = {}): Buffer {
  const withKey = options.withKey === true;
  const frame = Buffer.allocUnsafe(frameLength(record, withKey));
  writeFrame(frame, 0, record, withKey);
  return frame;
}

/** A record to be encoded into a buffer of the caller's. */
export class RecordBytes {
  readonly length: number;
  readonly #record: StoreRecord;

  constructor(record: StoreRecord) {
    this.#record = record;
    this.length = frameLength(record, false);
  }

  /** Writes the same bytes as `encodeRecord`. */
  writeTo(out: Buffer, at: number): void {
    writeFrame(out, at, this.#record, false);
  }
}

/**
 * Decodes the record that a store holds for `key` from `bytes`, or from their part between `start` and `end`; undefined
 * when the frame carries another full key. The payload refers to `bytes`: copy it to keep it longer. Throws CodecError.
 */
export function decodeRecord(
  bytes: Uint8Array,
  key: string,
  start = 0,
  end = bytes.length,
): StoreRecord | undefined {
  return readUsual(bytes, key, start, end) ?? readFrame(new FrameReader(bytes, start, end), key, true);
}

/** Returned by `decodeHeader` for bytes that end within the header. */
export const INCOMPLETE: unique symbol = Symbol("incomplete");

/**
 * Like `decodeRecord`, from the first bytes of a frame: payloads are empty, and too few bytes give INCOMPLETE instead of
 * an error. The header of an entry without tags takes about 35 bytes.
 */
export function decodeHeader(bytes: Uint8Array, key: string): StoreRecord | undefined | typeof INCOMPLETE {
  return decodeFirst(bytes, key, false);
}

/** As `decodeHeader`, with as much of the payload as the bytes hold. `total`: the length of the whole frame. */
export function decodeHead(
  bytes: Uint8Array,
  key: string,
  total: number,
): RecordHead | undefined | typeof INCOMPLETE {
  const record = decodeFirst(bytes, key, true);
  if (record === undefined || record === INCOMPLETE) return record;
  return { record, payloadBytes: heldBytes(record) + Math.max(0, total - bytes.length) };
}

/** The record as its own head: nothing of it is missing. */
export const wholeHead = (record: StoreRecord | undefined): RecordHead | undefined =>
  record && { record, payloadBytes: heldBytes(record) };

function heldBytes(record: StoreRecord): number {
  const entry = record.kind === "lease" ? record.behind : record;
  return entry?.kind === "entry" ? payloadLength(entry.payload) : 0;
}

function decodeFirst(
  bytes: Uint8Array,
  key: string,
  withPayload: boolean,
): StoreRecord | undefined | typeof INCOMPLETE {
  const reader = new FrameReader(bytes);
  try {
    return readFrame(reader, key, withPayload);
  } catch (error) {
    if (reader.ranOut) return INCOMPLETE;
    throw error;
  }
}

/** How many leading bytes `isEndedLease` needs. */
export const EXPIRY_END = HEAD_LENGTH + 1 + TIME_LENGTH;

/** Whether a frame with these first bytes is a lease whose load has ended without a value: it expires at 0. */
export function isEndedLease(bytes: Uint8Array): boolean {
  if (bytes.length < EXPIRY_END || bytes[0] !== KIND.lease) return false;
  return ((bytes[HEAD_LENGTH] as number) & FLAG.neverExpires) === 0 && timeAt(bytes, HEAD_LENGTH + 1) === 0;
}

function frameLength(record: StoreRecord, withKey: boolean): number {
  const flags = flagsOf(record, withKey);
  let length = HEAD_LENGTH + 2;
  if ((flags & FLAG.neverExpires) === 0) length += TIME_LENGTH;
  if (record.kind === "stamp") return length;
  length += tokensLength(record.namespaceStamps);
  if ((flags & FLAG.tags) !== 0) length += tagsLength(record.tags);
  if (withKey) length += textLength(record.key);
  if (record.kind === "lease") {
    return record.behind === undefined ? length : length + frameLength(record.behind, false);
  }
  if ((flags & (FLAG.staleAsExpires | FLAG.staleForEver)) === 0) length += TIME_LENGTH;
  return length + TIME_LENGTH + 1 + payloadLength(record.payload);
}

function writeFrame(out: Buffer, start: number, record: StoreRecord, withKey: boolean): void {
  const flags = flagsOf(record, withKey);
  let at = writeHead(out, start, record);
  out[at++] = flags;
  if (record.kind === "entry") at = writeTime(out, at, record.created);
  if ((flags & FLAG.neverExpires) === 0) at = writeTime(out, at, record.expires);
  if (record.kind === "entry" && (flags & (FLAG.staleAsExpires | FLAG.staleForEver)) === 0) {
    at = writeTime(out, at, record.staleUntil);
  }
  if (record.kind !== "stamp") {
    at = writeTokens(out, at, record.namespaceStamps);
    if ((flags & FLAG.tags) !== 0) at = writeTags(out, at, record.tags);
    if (withKey) at = writeText(out, at, record.key);
  }
  if (record.kind === "entry") out[at++] = record.payload.format;
  out[at] = checkOf(out, start, at);
  if (record.kind === "entry") writePayload(out, at + 1, record.payload);
  if (record.kind === "lease" && record.behind !== undefined) writeFrame(out, at + 1, record.behind, false);
}

function writeHead(out: Buffer, at: number, record: StoreRecord): number {
  out[at] = KIND[record.kind];
  return writeToken(out, at + VERSION_OFFSET, record.version);
}

function flagsOf(record: StoreRecord, withKey: boolean): number {
  let flags = record.expires === Number.POSITIVE_INFINITY ? FLAG.neverExpires : 0;
  if (record.kind === "stamp") return flags;
  if (record.tags.length > 0) flags |= FLAG.tags;
  if (withKey) flags |= FLAG.key;
  if (record.kind === "lease") return record.behind === undefined ? flags : flags | FLAG.behind;
  if (record.staleUntil === record.expires) return flags | FLAG.staleAsExpires;
  return record.staleUntil === Number.POSITIVE_INFINITY ? flags | FLAG.staleForEver : flags;
}

// Nearly every record that is read is an entry of a root namespace, without tags and without a stale window. Its fields
// have fixed offsets.
const USUAL = { created: 10, expires: 16, namespaceStamps: 22, format: 31, check: 32, payload: 33 } as const;

/** Fast path of `readFrame` for such an entry; undefined for anything else, including damaged frames. */
function readUsual(bytes: Uint8Array, key: string, start: number, end: number): Entry | undefined {
  if (end - start < USUAL.payload || bytes[start] !== KIND.entry) return undefined;
  if (bytes[start + HEAD_LENGTH] !== FLAG.staleAsExpires || bytes[start + USUAL.namespaceStamps] !== 1)
    return undefined;
  const check = start + USUAL.check;
  if (bytes[check] !== checkOf(bytes, start, check)) return undefined;
  const expires = timeAt(bytes, start + USUAL.expires);
  return {
    kind: "entry",
    version: tokenAt(bytes, start + VERSION_OFFSET),
    key,
    created: timeAt(bytes, start + USUAL.created),
    expires,
    staleUntil: expires,
    namespaceStamps: stampListAt(bytes, start + USUAL.namespaceStamps + 1),
    tags: NO_TAGS,
    payload: new PayloadSlice(bytes[start + USUAL.format]!, bytes, start + USUAL.payload, end),
  };
}

function readFrame(reader: FrameReader, key: string, withPayload: boolean): StoreRecord | undefined {
  const start = reader.position;
  const kind = reader.byte();
  const allowed = flagsAllowedIn(kind);
  const version = reader.token();
  const flags = reader.byte();
  if ((flags & ~allowed) !== 0) throw invalidFrame(`its flags are 0x${flags.toString(16)}`);
  const created = kind === KIND.entry ? reader.time() : 0;
  const expires = (flags & FLAG.neverExpires) === 0 ? reader.time() : Number.POSITIVE_INFINITY;
  if (kind === KIND.stamp) {
    reader.check(start);
    expectEnd(reader);
    return { kind: "stamp", version, expires };
  }
  const staleUntil = kind === KIND.entry ? readStaleUntil(reader, flags, expires) : 0;
  const namespaceStamps = reader.tokens();
  const tags = (flags & FLAG.tags) === 0 ? NO_TAGS : reader.tags();
  const carriedKey = (flags & FLAG.key) === 0 ? key : reader.text();
  const format = kind === KIND.entry ? reader.byte() : 0;
  reader.check(start);
  if (carriedKey !== key) return undefined;
  if (kind === KIND.lease) {
    const lease: Lease = { kind: "lease", version, key, expires, namespaceStamps: namespaceStamps, tags };
    if ((flags & FLAG.behind) !== 0) return { ...lease, behind: readBehind(reader, key, withPayload) };
    expectEnd(reader);
    return lease;
  }
  const payload = withPayload ? reader.rest(format) : { format, bytes: NO_BYTES };
  return {
    kind: "entry",
    version,
    key,
    created,
    expires,
    staleUntil,
    namespaceStamps: namespaceStamps,
    tags,
    payload,
  };
}

function readStaleUntil(reader: FrameReader, flags: number, expires: number): number {
  if ((flags & FLAG.staleAsExpires) !== 0) return expires;
  return (flags & FLAG.staleForEver) === 0 ? reader.time() : Number.POSITIVE_INFINITY;
}

function readBehind(reader: FrameReader, key: string, withPayload: boolean): Entry {
  if (reader.peek() !== KIND.entry) throw invalidFrame("the record behind a lease is not an entry");
  const behind = readFrame(reader, key, withPayload);
  if (behind === undefined) throw invalidFrame("the entry behind a lease carries another key");
  return behind as Entry;
}

function expectEnd(reader: FrameReader): void {
  if (reader.left > 0) throw invalidFrame(`${reader.left} bytes follow its end`);
}

/** Also rejects a first byte that no record of this format begins with. */
function flagsAllowedIn(kind: number): number {
  if (kind === KIND.entry) return ENTRY_FLAGS;
  if (kind === KIND.lease) return LEASE_FLAGS;
  if (kind === KIND.stamp) return STAMP_FLAGS;
  if (kind < MAJOR + 0x10) throw invalidFrame(`it begins with 0x${kind.toString(16)}`);
  throw new CodecError(
    "FRAME_VERSION",
    `A stored record has format version ${((kind - MAJOR) >> 4) + 1}; this version of xcache reads version 1.`,
  );
}
