// Reads standard MessagePack from untrusted bytes: every length is checked against what is left.
import { CodecError } from "../core/errors.ts";

const NOTHING = Buffer.alloc(0);
/** Longer keys are decoded each time. */
const CACHED_KEY_BYTES = 32;
const KEY_SLOTS = 1024;
/** Strings up to this length are cut from a window; for a longer one, checking every byte costs more than a native call. */
const WINDOW_TEXT_BYTES = 64;
/** The most memory that a string cut from a window can keep alive. */
const WINDOW_BYTES = 2048;

// Keys repeat from object to object; reusing one string instance also makes property access faster.
const knownKeys: string[] = new Array(KEY_SLOTS).fill("");
/** The bytes of each key after its length, because reading them from the string is slow. */
const knownBytes = new Uint8Array(KEY_SLOTS * (CACHED_KEY_BYTES + 1));

export class ByteReader {
  #bytes: Buffer = NOTHING;
  #at = 0;
  #end = 0;
  // A native call per string costs more than a loop over its bytes, so one call decodes a whole window as latin1 and the
  // ASCII strings are sliced from it.
  #window = "";
  #windowStart = 0;
  #windowEnd = 0;

  start(bytes: Uint8Array, from: number, to: number): void {
    this.#bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#at = from;
    this.#end = to;
  }

  /** Releases the bytes. */
  stop(): void {
    this.#bytes = NOTHING;
    this.#window = "";
    this.#windowStart = 0;
    this.#windowEnd = 0;
  }

  get position(): number {
    return this.#at;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  byte(): number {
    if (this.#at >= this.#end) throw truncated();
    return this.#bytes[this.#at++]!;
  }

  uint16(): number {
    const at = this.#advance(2);
    return (this.#bytes[at]! << 8) | this.#bytes[at + 1]!;
  }

  uint32(): number {
    const at = this.#advance(4);
    const bytes = this.#bytes;
    return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
  }

  float32(): number {
    return this.#bytes.readFloatBE(this.#advance(4));
  }

  float64(): number {
    return this.#bytes.readDoubleBE(this.#advance(8));
  }

  bigInt64(): bigint {
    return this.#bytes.readBigInt64BE(this.#advance(8));
  }

  bigUint64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#advance(8));
  }

  /** A view of the next bytes; copy them to keep them. */
  binary(length: number): Buffer {
    const at = this.#advance(length);
    return this.#bytes.subarray(at, at + length);
  }

  text16(length: number): string {
    if (length % 2 !== 0) throw damaged("a UTF-16 string has an odd number of bytes");
    const at = this.#advance(length);
    return this.#bytes.toString("utf16le", at, at + length);
  }

  text(length: number): string {
    const at = this.#advance(length);
    const end = at + length;
    if (length > WINDOW_TEXT_BYTES || !this.#isAscii(at, end)) return this.#bytes.toString("utf8", at, end);
    if (end > this.#windowEnd) this.#openWindow(at);
    return this.#window.slice(at - this.#windowStart, end - this.#windowStart);
  }

  /** A string that has probably been read before. */
  key(length: number): string {
    if (length === 0 || length > CACHED_KEY_BYTES) return this.text(length);
    const at = this.#at;
    if (length > this.#end - at) throw truncated();
    const bytes = this.#bytes;
    const slot =
      (length * 137 + bytes[at]! * 31 + bytes[at + length - 1]! * 7 + bytes[at + (length >> 1)]!) % KEY_SLOTS;
    if (this.#isKnown(slot, at, length)) {
      this.#at = at + length;
      return knownKeys[slot]!;
    }
    const key = this.text(length);
    knownKeys[slot] = key;
    const start = slot * (CACHED_KEY_BYTES + 1);
    knownBytes[start] = length;
    for (let i = 0; i < length; i++) knownBytes[start + 1 + i] = bytes[at + i]!;
    return key;
  }

  #isKnown(slot: number, at: number, length: number): boolean {
    const bytes = this.#bytes;
    const start = slot * (CACHED_KEY_BYTES + 1);
    if (knownBytes[start] !== length) return false;
    for (let i = 0; i < length; i++) if (knownBytes[start + 1 + i] !== bytes[at + i]) return false;
    return true;
  }

  /** Without a branch per byte, because nearly all strings are ASCII. */
  #isAscii(at: number, end: number): boolean {
    const bytes = this.#bytes;
    let all = 0;
    for (let i = at; i < end; i++) all |= bytes[i]!;
    return all < 0x80;
  }

  #openWindow(at: number): void {
    this.#windowStart = at;
    this.#windowEnd = Math.min(at + WINDOW_BYTES, this.#end);
    this.#window = this.#bytes.toString("latin1", at, this.#windowEnd);
  }

  #advance(count: number): number {
    const at = this.#at;
    if (count > this.#end - at) throw truncated();
    this.#at = at + count;
    return at;
  }
}

export function damaged(what: string, cause?: unknown): CodecError {
  return new CodecError("FRAME_INVALID", `A stored payload is damaged: ${what}.`, { cause });
}

function truncated(): CodecError {
  return damaged("it ends in the middle of a value");
}
