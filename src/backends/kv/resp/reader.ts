// Parses RESP3 replies from socket chunks. Bulk strings are views into the chunk where possible: copy what is kept.
// Maps, sets and pushes become lists, attributes are dropped, and streamed types, which no server sends, are rejected.

import { exact, isLineEnd, isLineType, isOk, lineValue, TYPE } from "./line.ts";
import { type Reply, ReplyError, Span } from "./reply.ts";

export interface ReplySink {
  /** Returns false if the receiver keeps nothing of the reply. */
  reply(reply: Reply): unknown;
  push(push: readonly Reply[]): void;
  /** Whether bulk strings of the current reply should be spans. */
  takesSpans?(): boolean;
}

interface OpenList {
  readonly items: Reply[];
  left: number;
  readonly push: boolean;
  /** An attribute precedes a reply and is not one. */
  readonly dropped: boolean;
}

const CR = 13;
const LF = 10;
const PLUS = 43;
const MINUS = 45;
const ZERO = 48;
const COLON = 58;

// No supported server exceeds these. The bulk limit is the server's own default (proto-max-bulk-len).
const LONGEST_BULK = 512 * 1024 * 1024;
const LONGEST_LIST = 2 ** 31 - 1;
const LONGEST_LINE = 64 * 1024;
const LONGEST_NUMBER = 20;
const DEEPEST = 64;

/** First allocation for an incomplete bulk string; it grows with the bytes received, whatever length was announced. */
const FIRST_CAPACITY = 1024 * 1024;

/** The position returned while more bytes are needed. */
const LATER = -1;

export class RespReader {
  /** Whether part of a reply has arrived. */
  isPartial = false;
  readonly #sink: ReplySink;
  readonly #open: OpenList[] = [];
  /** The beginning of an incomplete header line. */
  #rest: Buffer | undefined;
  /** An incomplete bulk string, the bytes received and the total expected, including the line end. */
  #bulk: Buffer | undefined;
  #bulkFilled = 0;
  #bulkExpected = 0;
  #bulkType = 0;
  /** The last result of #number. */
  #read = 0;
  /** The end of the current chunk. */
  #end = 0;
  /** Whether a receiver still refers to bytes of the chunk. */
  #isHeld = false;
  /** Whether the current reply contains spans. */
  #hasSpans = false;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  /** Bytes that the present bulk string still lacks. */
  get missing(): number {
    return this.#bulk === undefined ? 0 : this.#bulkExpected - this.#bulkFilled;
  }

  /**
   * Parses the first `length` bytes of a chunk. Returns whether its bytes are still referred to, so that the buffer must
   * not be reused. Throws on bytes that are not RESP; the connection is then unusable.
   */
  feed(received: Buffer, length = received.length): boolean {
    this.#end = length;
    this.#isHeld = false;
    if (this.#bulk !== undefined) {
      const at = this.#fillBulk(received, 0);
      if (at !== LATER) this.#readFrom(received, at);
    } else if (this.#rest !== undefined) {
      const chunk = Buffer.concat([this.#rest, received.subarray(0, length)]);
      this.#end = chunk.length;
      this.#rest = undefined;
      this.#readFrom(chunk, 0);
    } else this.#readFrom(received, 0);
    this.isPartial = this.#bulk !== undefined || this.#open.length > 0 || this.#rest !== undefined;
    // An incomplete list may contain spans.
    return this.#isHeld || this.#open.length > 0;
  }

  #readFrom(chunk: Buffer, start: number): void {
    const end = this.#end;
    for (let at = start; at < end; ) {
      const next = this.#header(chunk, at);
      if (next === LATER) {
        if (this.#bulk === undefined) this.#rest = Buffer.from(chunk.subarray(at, end));
        return;
      }
      at = next;
    }
  }

  /** Parses one header line and the bulk string after it; returns where the next one begins. */
  #header(chunk: Buffer, start: number): number {
    const type = chunk[start] as number;
    switch (type) {
      case TYPE.bulk:
      case TYPE.verbatim:
      case TYPE.bulkError: {
        const after = this.#number(chunk, start + 1);
        return after === LATER ? LATER : this.#bulkHeader(chunk, type, this.#read, after);
      }
      case TYPE.integer: {
        const after = this.#number(chunk, start + 1);
        if (after !== LATER) this.#value(exact(this.#read, chunk, start + 1, after - 2));
        return after;
      }
      case TYPE.list:
      case TYPE.set:
      case TYPE.push:
      case TYPE.map:
      case TYPE.attribute: {
        const after = this.#number(chunk, start + 1);
        if (after === LATER) return LATER;
        this.#list(type, this.#read);
        return this.#isListOfSpans(type) ? this.#readSpans(chunk, after) : after;
      }
      default:
        return this.#line(chunk, type, start);
    }
  }

  /** A single-line reply. */
  #line(chunk: Buffer, type: number, start: number): number {
    if (type === TYPE.simple && start + 5 <= this.#end && isOk(chunk, start)) {
      this.#value("OK");
      return start + 5;
    }
    if (!isLineType(type)) throw new Error(`a reply of unknown type 0x${type.toString(16)}`);
    const last = this.#end - 1;
    const found = chunk.indexOf(CR, start);
    const end = found < 0 || found > last ? this.#end : found;
    if (end - start > LONGEST_LINE) throw new Error("a line longer than 64 KiB");
    if (end >= last) return LATER;
    if (chunk[end + 1] !== LF) throw new Error("a carriage return without a line feed");
    this.#value(lineValue(type, chunk, start + 1, end));
    return end + 2;
  }

  /** Parses a number and its line end into `#read`; returns where the next line begins. */
  #number(chunk: Buffer, start: number): number {
    const end = this.#end;
    if (start === end) return LATER;
    const sign = chunk[start];
    const first = sign === MINUS || sign === PLUS ? start + 1 : start;
    let value = 0;
    let at = first;
    for (; at < end; at++) {
      const digit = (chunk[at] as number) - ZERO;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at - first > LONGEST_NUMBER) throw new Error("a number with too many digits");
    if (at === end) return LATER;
    if (chunk[at] !== CR || at === first) throw new Error("a malformed number");
    if (at + 1 === end) return LATER;
    if (chunk[at + 1] !== LF) throw new Error("a carriage return without a line feed");
    this.#read = sign === MINUS && value > 0 ? -value : value;
    return at + 2;
  }

  #bulkHeader(chunk: Buffer, type: number, length: number, start: number): number {
    if (length === -1 && type === TYPE.bulk) {
      this.#value(null);
      return start;
    }
    if (length < 0 || length > LONGEST_BULK) throw new Error(`a string of ${length} bytes`);
    const end = start + length;
    if (end + 2 <= this.#end) {
      this.#bulkValue(type, chunk, start, end);
      return end + 2;
    }
    this.#bulk = Buffer.allocUnsafe(Math.min(length + 2, FIRST_CAPACITY));
    this.#bulkFilled = 0;
    this.#bulkExpected = length + 2;
    this.#bulkType = type;
    return this.#fillBulk(chunk, start);
  }

  #fillBulk(chunk: Buffer, start: number): number {
    const end = Math.min(start + this.#bulkExpected - this.#bulkFilled, this.#end);
    const filled = this.#bulkFilled + end - start;
    const bulk = this.#bulkBuffer(filled);
    chunk.copy(bulk, this.#bulkFilled, start, end);
    this.#bulkFilled = filled;
    if (filled < this.#bulkExpected) return LATER;
    this.#bulk = undefined;
    this.#bulkValue(this.#bulkType, bulk, 0, filled - 2);
    return end;
  }

  #bulkBuffer(needed: number): Buffer {
    const present = this.#bulk as Buffer;
    if (needed <= present.length) return present;
    const grown = Buffer.allocUnsafe(Math.min(this.#bulkExpected, Math.max(needed, present.length * 2)));
    present.copy(grown, 0, 0, this.#bulkFilled);
    this.#bulk = grown;
    return grown;
  }

  #bulkValue(type: number, bytes: Buffer, start: number, end: number): void {
    if (!isLineEnd(bytes, end)) throw new Error("a string longer than announced");
    if (type === TYPE.bulk) {
      const isSpan = this.#takesSpans() && this.#open[0]?.push !== true;
      this.#value(isSpan ? this.#span(bytes, start, end) : this.#view(bytes, start, end));
    } else if (type === TYPE.bulkError) {
      this.#value(new ReplyError(bytes.toString("utf8", start, end)));
    } else {
      // Three letters for the format, then a colon.
      if (end - start < 4 || bytes[start + 3] !== COLON)
        throw new Error("a verbatim string without its format");
      this.#value(this.#view(bytes, start + 4, end));
    }
  }

  #takesSpans(): boolean {
    return this.#sink.takesSpans?.() === true;
  }

  #span(bytes: Buffer, start: number, end: number): Span {
    this.#hasSpans = true;
    return new Span(bytes, start, end);
  }

  #view(bytes: Buffer, start: number, end: number): Buffer {
    this.#isHeld = true;
    return bytes.subarray(start, end);
  }

  #list(type: number, length: number): void {
    if (length === -1 && type === TYPE.list) {
      this.#value(null);
      return;
    }
    if (length < 0 || length > LONGEST_LIST) throw new Error(`a list of ${length} replies`);
    const push = type === TYPE.push;
    if (push && this.#open.length > 0) throw new Error("a push inside a reply");
    const dropped = type === TYPE.attribute;
    if (length > 0) {
      if (this.#open.length === DEEPEST) throw new Error(`replies nested deeper than ${DEEPEST}`);
      const left = type === TYPE.map || dropped ? 2 * length : length;
      this.#open.push({ items: [], left, push, dropped });
    } else if (push) this.#sink.push([]);
    else if (!dropped) this.#value([]);
  }

  #isListOfSpans(type: number): boolean {
    const [first] = this.#open;
    return type === TYPE.list && first?.push === false && this.#open.length === 1 && this.#takesSpans();
  }

  /**
   * Fast path for the usual MGET reply: complete bulk strings and nulls. Returns where anything else begins, at the latest
   * the last item, which the general path parses.
   */
  #readSpans(chunk: Buffer, start: number): number {
    const open = this.#open[0] as OpenList;
    const { items } = open;
    const end = this.#end;
    let left = open.left;
    let at = start;
    for (; left > 1; left--) {
      let next = at + 1;
      if (chunk[at] === TYPE.bulk) {
        let length = 0;
        for (let digit = chunk[next]! - ZERO; digit >= 0 && digit <= 9; digit = chunk[++next]! - ZERO)
          length = length * 10 + digit;
        const from = next + 2;
        const to = from + length;
        if (next === at + 1 || to + 2 > end || !isLineEnd(chunk, next) || !isLineEnd(chunk, to)) break;
        items.push(new Span(chunk, from, to));
        at = to + 2;
      } else {
        if (chunk[at] !== TYPE.none || at + 3 > end || !isLineEnd(chunk, next)) break;
        items.push(null);
        at += 3;
      }
    }
    if (left < open.left) this.#hasSpans = true;
    open.left = left;
    return at;
  }

  #value(value: Reply): void {
    let current: Reply = value;
    for (;;) {
      const open = this.#open.at(-1);
      if (open === undefined) {
        if (this.#sink.reply(current) !== false && this.#hasSpans) this.#isHeld = true;
        this.#hasSpans = false;
        return;
      }
      open.items.push(current);
      if (--open.left > 0) return;
      this.#open.pop();
      if (open.dropped) return;
      if (open.push) {
        this.#sink.push(open.items);
        return;
      }
      current = open.items;
    }
  }
}
