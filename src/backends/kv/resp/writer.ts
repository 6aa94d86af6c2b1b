// Writes commands as RESP, one after another, so that a tick's commands leave in one write.
import { keyArgument } from "../../wire/key-bytes.ts";

/** An argument that serializes itself into the output. */
export interface SelfWriting {
  readonly length: number;
  writeTo(out: Buffer, at: number): void;
}

/** Text is sent as UTF-8 without replacing lone surrogates: see key-bytes.ts. */
export type Argument = string | Uint8Array | SelfWriting;

const SIZE = 16 * 1024;
/** A buffer with less space left is replaced. */
const LEAST_SPACE = 2 * 1024;
const CR = 13;
const LF = 10;
const STAR = 42;
const DOLLAR = 36;
const ZERO = 48;
/** Shorter text is written by a loop, which beats a call into the runtime. */
const SHORT = 64;
/** Most bytes of a type byte, a length and a line end. */
const HEADER = 16;
/** The bytes between an argument and the next one, by the length of the next. */
const BETWEEN = Array.from({ length: 256 }, (_, length) => between(length));
/** Spare bytes, so that a text with a non-ASCII character writes more bytes than it has characters. */
const ONE_MORE = 4;

export class RespWriter {
  #out = Buffer.allocUnsafeSlow(SIZE);
  /** What was taken lies before it and is not touched again. */
  #from = 0;
  #at = 0;

  /** Returns the size of the command. Appends nothing if an argument throws. */
  append(args: readonly Argument[]): number {
    const before = this.#at - this.#from;
    try {
      if (this.#at + HEADER > this.#out.length) this.#grow(HEADER);
      this.#header(STAR, args.length);
      for (const arg of args) {
        if (typeof arg === "string") this.#text(arg);
        else this.#bytes(arg);
      }
      return this.#at - this.#from - before;
    } catch (error) {
      this.#at = this.#from + before;
      throw error;
    }
  }

  /**
   * The same for a command whose arguments are many short texts: put together as one text first, which is written in one
   * go, three times as fast as each on its own.
   */
  appendTexts(command: string, texts: readonly string[]): number {
    let all = `*${texts.length + 1}\r\n$${command.length}\r\n${command}`;
    for (const text of texts) all += (BETWEEN[text.length] ?? between(text.length)) + text;
    all += "\r\n";
    this.#reserve(all.length + ONE_MORE);
    if (this.#out.write(all, this.#at) !== all.length) return this.append([command, ...texts]);
    this.#at += all.length;
    return all.length;
  }

  /** Everything appended since the last call, perhaps nothing. The caller owns it. */
  take(): Buffer {
    const taken = this.#out.subarray(this.#from, this.#at);
    if (this.#out.length > SIZE || this.#out.length - this.#at < LEAST_SPACE) {
      this.#out = Buffer.allocUnsafeSlow(SIZE);
      this.#at = 0;
    }
    this.#from = this.#at;
    return taken;
  }

  #text(text: string): void {
    if (text.length > SHORT) {
      this.#long(text);
      return;
    }
    const { length } = text;
    if (this.#at + HEADER + length + 2 > this.#out.length) this.#grow(HEADER + length + 2);
    const out = this.#out;
    let at = this.#at;
    // Two digits at most: see SHORT.
    out[at++] = DOLLAR;
    if (length >= 10) out[at++] = ZERO + Math.trunc(length / 10);
    out[at++] = ZERO + (length % 10);
    out[at++] = CR;
    out[at++] = LF;
    for (let index = 0; index < length; index++) {
      const code = text.charCodeAt(index);
      if (code > 127) {
        this.#long(text);
        return;
      }
      out[at++] = code;
    }
    out[at++] = CR;
    out[at++] = LF;
    this.#at = at;
  }

  /** Text that is long or not ASCII. */
  #long(text: string): void {
    const exact = keyArgument(text);
    if (typeof exact !== "string") {
      this.#bytes(exact);
      return;
    }
    const length = Buffer.byteLength(text);
    this.#reserve(HEADER + length + 2);
    this.#header(DOLLAR, length);
    this.#at += this.#out.write(text, this.#at);
    this.#out[this.#at++] = CR;
    this.#out[this.#at++] = LF;
  }

  #bytes(bytes: Uint8Array | SelfWriting): void {
    const { length } = bytes;
    if (this.#at + HEADER + length + 2 > this.#out.length) this.#grow(HEADER + length + 2);
    this.#header(DOLLAR, length);
    if (bytes instanceof Uint8Array) this.#out.set(bytes, this.#at);
    else bytes.writeTo(this.#out, this.#at);
    this.#at += length;
    this.#out[this.#at++] = CR;
    this.#out[this.#at++] = LF;
  }

  #header(type: number, count: number): void {
    const out = this.#out;
    const start = this.#at;
    out[start] = type;
    let end = start + 2;
    for (let least = 10; count >= least; least *= 10) end++;
    let left = count;
    for (let at = end - 1; at > start; at--) {
      out[at] = ZERO + (left % 10);
      left = Math.trunc(left / 10);
    }
    out[end++] = CR;
    out[end++] = LF;
    this.#at = end;
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes > this.#out.length) this.#grow(bytes);
  }

  #grow(bytes: number): void {
    const present = this.#at - this.#from;
    const grown = Buffer.allocUnsafeSlow(Math.max(present + bytes, present * 2, SIZE));
    this.#out.copy(grown, 0, this.#from, this.#at);
    this.#out = grown;
    this.#from = 0;
    this.#at = present;
  }
}

function between(length: number): string {
  return `\r\n$${length}\r\n`;
}
