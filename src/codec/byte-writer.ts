// Writes standard MessagePack into a growing buffer, always in the shortest form.
// https://github.com/msgpack/msgpack/blob/master/spec.md
import { PayloadSlice } from "../core/codec.ts";
import { tooLarge } from "./descent.ts";
import type { CodecLimits } from "./options.ts";
import { EXTENSION } from "./payload-format.ts";

/** Small results lie one behind another in memory of this size, which lives as long as one of them is in use. */
const CHUNK_BYTES = 64 * 1024;
/** Larger results are copied out of it. */
const MOST_IN_CHUNK = 4 * 1024;
/** Larger memory than this, which a large value has needed, is not kept for the next one. */
const KEPT_BYTES = 1024 * 1024;
/** How far a reservation may exceed the limit; the bytes actually written are checked at the end. */
const SLACK_BYTES = 64 * 1024;
/** Up to this many characters a loop beats a native call. */
const SHORT_TEXT = 64;
/** Up to this many characters three bytes each, the worst case, are reserved without counting. */
const MEDIUM_TEXT = 4096;

/** The most entries of a map with a one-byte header. */
const FIXMAP_MOST = 15;

type WellFormedTest = { isWellFormed(): boolean };

export class ByteWriter {
  #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /** Bytes before it were handed out and are not touched again. */
  #from = 0;
  /** More room than the chunk has, from an earlier value. */
  #spare: Buffer<ArrayBuffer> | undefined;
  /** What is written to: the chunk, or more room. */
  #bytes = this.#chunk;
  #view = new DataView(this.#bytes.buffer);
  #at = 0;
  #limits: CodecLimits = { maxBytes: 0, maxDepth: 0 };

  start(limits: CodecLimits): void {
    if (this.#bytes !== this.#chunk || this.#chunk.length - this.#from < MOST_IN_CHUNK) this.#begin();
    this.#at = this.#from;
    this.#limits = limits;
  }

  /** A private copy of what was written; the writer can then be restarted. */
  finish(): Buffer {
    const size = this.#checkedSize();
    const result = Buffer.allocUnsafe(size);
    this.#bytes.copy(result, 0, this.#from, this.#at);
    if (this.#bytes.length > KEPT_BYTES) this.#begin();
    return result;
  }

  /** What was written as a payload of this format, where it is if it is small; the writer can then be restarted. */
  finishPayload(format: number): PayloadSlice {
    const size = this.#checkedSize();
    if (size > MOST_IN_CHUNK || this.#bytes !== this.#chunk)
      return new PayloadSlice(format, this.finish(), 0, size);
    const start = this.#from;
    this.#from = this.#at;
    return new PayloadSlice(format, this.#bytes, start, this.#at);
  }

  #checkedSize(): number {
    const size = this.#at - this.#from;
    if (size > this.#limits.maxBytes) throw tooLarge(this.#limits);
    return size;
  }

  get position(): number {
    return this.#at;
  }

  /** Discards what was written after `position`. */
  rewind(position: number): void {
    this.#at = position;
  }

  nil(): void {
    this.#byte(0xc0);
  }

  boolean(value: boolean): void {
    this.#byte(value ? 0xc3 : 0xc2);
  }

  undefined(): void {
    this.#reserve(3);
    const bytes = this.#bytes;
    bytes[this.#at++] = 0xd4;
    bytes[this.#at++] = EXTENSION.undefined;
    bytes[this.#at++] = 0;
  }

  number(value: number): void {
    this.#reserve(9);
    if (value >>> 0 === value && (value !== 0 || 1 / value > 0)) this.#unsigned(value);
    else if (value >> 0 === value && value < 0) this.#negative(value);
    else this.#float(value);
  }

  bigint(value: bigint): void {
    this.#reserve(9);
    if (BigInt.asIntN(64, value) === value) {
      this.#bytes[this.#at] = 0xd3;
      this.#view.setBigInt64(this.#at + 1, value);
      this.#at += 9;
    } else if (BigInt.asUintN(64, value) === value) {
      this.#bytes[this.#at] = 0xcf;
      this.#view.setBigUint64(this.#at + 1, value);
      this.#at += 9;
    } else {
      this.#longBigint(value);
    }
  }

  text(value: string): void {
    const length = value.length;
    if (length > SHORT_TEXT) {
      this.#longText(value);
      return;
    }
    this.#reserve(length + 2);
    const bytes = this.#bytes;
    let at = this.#at;
    if (length < 32) {
      bytes[at++] = 0xa0 | length;
    } else {
      bytes[at++] = 0xd9;
      bytes[at++] = length;
    }
    for (let i = 0; i < length; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 0x7f) {
        this.#longText(value);
        return;
      }
      bytes[at++] = unit;
    }
    this.#at = at;
  }

  binary(content: Uint8Array): void {
    const { length } = content;
    this.#reserve(length + 5);
    if (length < 0x100) this.#short(0xc4, length);
    else if (length < 0x10000) this.#medium(0xc5, length);
    else this.#long(0xc6, length);
    this.#append(content);
  }

  arrayHeader(count: number): void {
    this.#reserve(5);
    if (count < 16) this.#bytes[this.#at++] = 0x90 | count;
    else if (count < 0x10000) this.#medium(0xdc, count);
    else this.#long(0xdd, count);
  }

  mapHeader(count: number): void {
    this.#reserve(5);
    if (count <= FIXMAP_MOST) this.#bytes[this.#at++] = 0x80 | count;
    else if (count < 0x10000) this.#medium(0xde, count);
    else this.#long(0xdf, count);
  }

  /** Opens a map of unknown size; pass the result to `closeMap`. */
  openMap(): number {
    this.#reserve(5);
    return this.#at++;
  }

  closeMap(opened: number, count: number): void {
    if (count <= FIXMAP_MOST) {
      this.#bytes[opened] = 0x80 | count;
      return;
    }
    const headerBytes = count < 0x10000 ? 3 : 5;
    this.#reserve(headerBytes);
    const end = this.#at;
    this.#bytes.copyWithin(opened + headerBytes, opened + 1, end);
    this.#at = opened;
    this.mapHeader(count);
    this.#at = end + headerBytes - 1;
  }

  /** An extension whose content is ready. */
  extension(type: number, content: Uint8Array): void {
    const { length } = content;
    this.#reserve(length + 6);
    if (length < 0x100) this.#short(0xc7, length);
    else if (length < 0x10000) this.#medium(0xc8, length);
    else this.#long(0xc9, length);
    this.#bytes[this.#at++] = type;
    this.#append(content);
  }

  /** An extension of exactly one float64. */
  floatExtension(type: number, value: number): void {
    this.#reserve(10);
    this.#bytes[this.#at++] = 0xd7;
    this.#bytes[this.#at++] = type;
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  /** Opens an extension whose content is written next; pass the result to `closeExtension`. */
  openExtension(type: number): number {
    this.#reserve(6);
    this.#bytes[this.#at] = 0xc9;
    this.#bytes[this.#at + 5] = type;
    this.#at += 6;
    return this.#at;
  }

  closeExtension(opened: number): void {
    this.#view.setUint32(opened - 5, this.#at - opened);
  }

  #unsigned(value: number): void {
    if (value < 0x80) this.#bytes[this.#at++] = value;
    else if (value < 0x100) this.#short(0xcc, value);
    else if (value < 0x10000) this.#medium(0xcd, value);
    else this.#long(0xce, value);
  }

  #negative(value: number): void {
    if (value >= -0x20) this.#bytes[this.#at++] = value;
    else if (value >= -0x80) this.#short(0xd0, value);
    else if (value >= -0x8000) this.#medium(0xd1, value);
    else this.#long(0xd2, value);
  }

  #float(value: number): void {
    if (Math.fround(value) === value) {
      this.#bytes[this.#at] = 0xca;
      this.#view.setFloat32(this.#at + 1, value);
      this.#at += 5;
    } else {
      this.#bytes[this.#at] = 0xcb;
      this.#view.setFloat64(this.#at + 1, value);
      this.#at += 9;
    }
  }

  #longBigint(value: bigint): void {
    const negative = value < 0n;
    const digits = (negative ? -value : value).toString(16);
    const magnitude = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
    const content = Buffer.allocUnsafe(magnitude.length + 1);
    content[0] = negative ? 1 : 0;
    magnitude.copy(content, 1);
    this.extension(EXTENSION.bigint, content);
  }

  #longText(value: string): void {
    if (!(value as unknown as WellFormedTest).isWellFormed()) {
      this.extension(EXTENSION.text16, Buffer.from(value, "utf16le"));
      return;
    }
    const { length } = value;
    const most = length <= MEDIUM_TEXT ? length * 3 : Buffer.byteLength(value);
    this.#reserve(most + 5);
    const expected = textHeaderBytes(length <= MEDIUM_TEXT ? length : most);
    const size = this.#bytes.write(value, this.#at + expected, "utf8");
    const actual = textHeaderBytes(size);
    if (actual !== expected) {
      const start = this.#at + expected;
      this.#bytes.copyWithin(this.#at + actual, start, start + size);
    }
    if (actual === 1) this.#bytes[this.#at++] = 0xa0 | size;
    else if (actual === 2) this.#short(0xd9, size);
    else if (actual === 3) this.#medium(0xda, size);
    else this.#long(0xdb, size);
    this.#at += size;
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = value;
  }

  #short(head: number, value: number): void {
    this.#bytes[this.#at++] = head;
    this.#bytes[this.#at++] = value;
  }

  #medium(head: number, value: number): void {
    const bytes = this.#bytes;
    bytes[this.#at++] = head;
    bytes[this.#at++] = value >> 8;
    bytes[this.#at++] = value;
  }

  #long(head: number, value: number): void {
    const bytes = this.#bytes;
    bytes[this.#at++] = head;
    bytes[this.#at++] = value >> 24;
    bytes[this.#at++] = value >> 16;
    bytes[this.#at++] = value >> 8;
    bytes[this.#at++] = value;
  }

  #append(content: Uint8Array): void {
    this.#bytes.set(content, this.#at);
    this.#at += content.length;
  }

  #reserve(count: number): void {
    if (this.#at + count > this.#bytes.length) this.#grow(count);
  }

  #grow(count: number): void {
    const needed = this.#at + count;
    // What was handed out stays where it is; positions stay the same, so that those that callers hold do.
    const most = this.#from + this.#limits.maxBytes + SLACK_BYTES;
    if (needed > most) throw tooLarge(this.#limits);
    const spare = this.#spare;
    this.#spare = undefined;
    const grown =
      spare !== undefined && spare.length >= needed
        ? spare
        : Buffer.allocUnsafeSlow(Math.min(Math.max(needed, this.#bytes.length * 2), most));
    this.#bytes.copy(grown, this.#from, this.#from, this.#at);
    this.#replace(grown);
  }

  /** Back to the chunk, or to a new one. */
  #begin(): void {
    if (this.#bytes !== this.#chunk) this.#spare = this.#bytes.length <= KEPT_BYTES ? this.#bytes : undefined;
    if (this.#chunk.length - this.#from < MOST_IN_CHUNK) {
      this.#chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
      this.#from = 0;
    }
    this.#replace(this.#chunk);
  }

  #replace(bytes: Buffer<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

function textHeaderBytes(size: number): number {
  if (size < 32) return 1;
  if (size < 0x100) return 2;
  return size < 0x10000 ? 3 : 5;
}
