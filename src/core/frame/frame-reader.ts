// A cursor over the bytes of a frame. The bytes are untrusted: every read is bounds-checked.

import { PayloadSlice } from "../codec.ts";
import { CodecError } from "../errors.ts";
import type { TagStamp, Token } from "../record.ts";
import { knownNameAt, knownStampAt, TIME_LENGTH, TOKEN_LENGTH, timeAt, tokenAt } from "./frame-fields.ts";

const CHECK_SEED = 0x5a;
/** Longer names are decoded every time. */
const KNOWN_NAME_BYTES = 32;

/** LEB128 digits of a count: 28 bits, far more than a key or a set of tags needs. */
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

  /** The next byte, without consuming it. */
  peek(): number {
    this.#need(1);
    return this.#bytes[this.#at]!;
  }

  byte(): number {
    this.#need(1);
    return this.#bytes[this.#at++]!;
  }

  token(): Token {
    return tokenAt(this.#bytes, this.#advance(TOKEN_LENGTH));
  }

  time(): number {
    return timeAt(this.#bytes, this.#advance(TIME_LENGTH));
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
    const at = this.#advance(length);
    if (head % 2 === 1) return this.#decoded("utf16le", at, length);
    const decode = (): string => this.#decoded("utf8", at, length);
    return length === 0 || length > KNOWN_NAME_BYTES
      ? decode()
      : knownNameAt(this.#bytes, at, length, decode);
  }

  #decoded(encoding: "utf8" | "utf16le", at: number, length: number): string {
    return Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + at, length).toString(encoding);
  }

  #stamp(): Token {
    return knownStampAt(this.#bytes, this.#advance(TOKEN_LENGTH));
  }

  /** Consumes and verifies the check byte of the header that began at `start`. */
  check(start: number): void {
    const expected = checkOf(this.#bytes, start, this.#at);
    if (this.byte() !== expected) throw invalidFrame("the check byte of its header does not match");
  }

  /** The remaining bytes, not copied. */
  rest(format: number): PayloadSlice {
    return new PayloadSlice(format, this.#bytes, this.#at, this.#end);
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

  /** Consumes bytes and returns their offset. */
  #advance(length: number): number {
    this.#need(length);
    const at = this.#at;
    this.#at = at + length;
    return at;
  }

  #need(length: number): void {
    if (length <= this.#end - this.#at) return;
    this.#ranOut = true;
    throw invalidFrame("it ends within its header");
  }
}

/** Every byte is weighted with a power of 31, which is odd, so a change of a single byte is always detected. */
export function checkOf(bytes: Uint8Array, start: number, end: number): number {
  let check = CHECK_SEED;
  let at = start;
  // Four at a time, so that the steps do not all depend on the previous one.
  for (; at + 4 <= end; at += 4) {
    const four = bytes[at]! * 29_791 + bytes[at + 1]! * 961 + bytes[at + 2]! * 31 + bytes[at + 3]!;
    check = (Math.imul(check, 923_521) + four) | 0;
  }
  for (; at < end; at++) check = ((check << 5) - check + bytes[at]!) | 0;
  return check & 0xff;
}

export function invalidFrame(why: string): CodecError {
  return new CodecError("FRAME_INVALID", `Stored bytes are not a record of xcache, or are damaged: ${why}.`);
}
