// A cursor over the bytes of a frame, which nobody vouches for: nothing is made of bytes that are not there.
import { CodecError } from "./errors.ts";
import { PayloadPart } from "./payload-part.ts";
import type { TagStamp, Token } from "./record.ts";

export const TOKEN_LENGTH = 8;
export const TIME_LENGTH = 6;

const CHECK_SEED = 0x5a;
// Tag names and stamps repeat from record to record. To recognise one is faster than to make it again, and what has
// been recognised compares by identity. Names and stamps are kept apart: the bytes of one may be those of the other.
const SLOTS = 256;
const knownNames: string[] = new Array(SLOTS).fill("");
const knownStamps: string[] = new Array(SLOTS).fill("");
/** Longer names are decoded each time. */
const KNOWN_NAME_BYTES = 32;

/** LEB128 digits of a count: 28 bits, far more than a key or a set of tags takes. */
const MOST_COUNT_DIGITS = 4;

export class FrameReader {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;
  #ranOut = false;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  get position(): number {
    return this.#at;
  }

  /** Whether reading failed because the bytes end too early. */
  get ranOut(): boolean {
    return this.#ranOut;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  /** The next byte, without taking it. */
  peek(): number {
    this.#need(1);
    return this.#bytes[this.#at]!;
  }

  byte(): number {
    this.#need(1);
    return this.#bytes[this.#at++]!;
  }

  token(): Token {
    this.#need(TOKEN_LENGTH);
    const bytes = this.#bytes;
    const at = this.#at;
    this.#at = at + TOKEN_LENGTH;
    // One call with eight arguments is three times faster than a slice decoded by the buffer.
    return String.fromCharCode(
      bytes[at]!,
      bytes[at + 1]!,
      bytes[at + 2]!,
      bytes[at + 3]!,
      bytes[at + 4]!,
      bytes[at + 5]!,
      bytes[at + 6]!,
      bytes[at + 7]!,
    );
  }

  time(): number {
    this.#need(TIME_LENGTH);
    const bytes = this.#bytes;
    const at = this.#at;
    this.#at = at + TIME_LENGTH;
    const high = (bytes[at]! << 8) | bytes[at + 1]!;
    const low =
      ((bytes[at + 2]! << 24) | (bytes[at + 3]! << 16) | (bytes[at + 4]! << 8) | bytes[at + 5]!) >>> 0;
    return high * 2 ** 32 + low;
  }

  tokens(): Token[] {
    const count = this.#count();
    const tokens: Token[] = [];
    for (let i = 0; i < count; i++) tokens.push(this.#stamp());
    return tokens;
  }

  tags(): TagStamp[] {
    const count = this.#count();
    const tags: TagStamp[] = [];
    for (let i = 0; i < count; i++) tags.push({ tag: this.text(), id: this.#stamp() });
    return tags;
  }

  text(): string {
    const head = this.#count();
    const length = head >>> 1;
    this.#need(length);
    const at = this.#at;
    this.#at = at + length;
    if (head % 2 === 1) return this.#decoded("utf16le", at, length);
    if (length === 0 || length > KNOWN_NAME_BYTES) return this.#decoded("utf8", at, length);
    const slot = this.#slotOf(at, length);
    const known = knownNames[slot]!;
    if (this.#equals(known, at, length)) return known;
    const text = this.#decoded("utf8", at, length);
    knownNames[slot] = text;
    return text;
  }

  #decoded(encoding: "utf8" | "utf16le", at: number, length: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + at, length).toString(encoding);
  }

  /** A token that other records are likely to carry too. */
  #stamp(): Token {
    this.#need(TOKEN_LENGTH);
    const slot = this.#slotOf(this.#at, TOKEN_LENGTH);
    const known = knownStamps[slot]!;
    if (this.#equals(known, this.#at, TOKEN_LENGTH)) {
      this.#at += TOKEN_LENGTH;
      return known;
    }
    const stamp = this.token();
    knownStamps[slot] = stamp;
    return stamp;
  }

  #slotOf(at: number, length: number): number {
    const bytes = this.#bytes;
    return (length * 37 + bytes[at]! * 7 + bytes[at + length - 1]! * 31 + bytes[at + (length >> 1)]!) % SLOTS;
  }

  /** Whether every character is the byte in its place; of UTF-8 only ASCII ever is. */
  #equals(known: string, at: number, length: number): boolean {
    if (known.length !== length) return false;
    const bytes = this.#bytes;
    for (let i = 0; i < length; i++) if (known.charCodeAt(i) !== bytes[at + i]) return false;
    return true;
  }

  /** Takes the check byte of the header that began at `start`. */
  check(start: number): void {
    const expected = checkOf(this.#bytes, start, this.#at);
    if (this.byte() !== expected) throw invalidFrame("the check byte of its header does not match");
  }

  /** What follows, in its place. */
  rest(format: number): PayloadPart {
    return new PayloadPart(format, this.#bytes, this.#at, this.#end);
  }

  #count(): number {
    let count = 0;
    for (let digit = 0; digit < MOST_COUNT_DIGITS; digit++) {
      const byte = this.byte();
      count |= (byte & 0x7f) << (7 * digit);
      if (byte < 0x80) return count;
    }
    throw invalidFrame("a count or length in it is out of range");
  }

  #need(length: number): void {
    if (length <= this.#end - this.#at) return;
    this.#ranOut = true;
    throw invalidFrame("it ends within its header");
  }
}

/** Every byte counts with a power of 31, which is odd, so no change of a single one goes unnoticed. */
export function checkOf(bytes: Uint8Array, start: number, end: number): number {
  let check = CHECK_SEED;
  for (let i = start; i < end; i++) check = ((check << 5) - check + bytes[i]!) | 0;
  return check & 0xff;
}

export function invalidFrame(why: string): CodecError {
  return new CodecError("FRAME_INVALID", `Stored bytes are not a record of xcache, or are damaged: ${why}.`);
}
