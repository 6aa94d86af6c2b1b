// Reads replies of memcached as they arrive. A value is passed on where it arrived.

/** A reply, valid until the callback returns. */
export interface MetaReply {
  /** The first word of its line, such as VA, HD, STAT or SERVER_ERROR. */
  readonly code: string;
  /** The rest of the line; empty for a value. */
  readonly text: string;
  /** Where the value is; for VA only. */
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  /** The opaque number (O) that was sent with the command; -1 without one. */
  readonly opaque: number;
  /** The item's CAS (c); empty without one. A 64-bit number, so it stays text. */
  readonly cas: string;
}

const CR = 13;
const LF = 10;
const SPACE = 32;
const ZERO = 48;
const LETTER = { A: 65, D: 68, E: 69, H: 72, M: 77, N: 78, O: 79, V: 86, c: 99 } as const;
const NOTHING = Buffer.alloc(0);

/** What memcached itself allows at most (-I). */
const LARGEST_VALUE = 1024 * 1024 * 1024;
const LONGEST_LINE = 8 * 1024;
/** Memory reserved for a value before its bytes arrive; it grows with them, whatever length was claimed. */
const FIRST_RESERVE = 1024 * 1024;
const INCOMPLETE = -1;

const CODES = new Set(
  "HD NS EX NF EN MN ME STAT END OK RESET VERSION ERROR CLIENT_ERROR SERVER_ERROR".split(" "),
);

export class MetaReader implements MetaReply {
  code = "";
  text = "";
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;
  opaque = -1;
  cas = "";
  readonly #reply: (reply: MetaReply) => void;
  /** The beginning of a line whose end is still to come. */
  #rest: Buffer | undefined;
  /** A value that has arrived in part, how much of it has, and its full length with the line end. */
  #value: Buffer | undefined;
  #filled = 0;
  #wanted = 0;
  /** Where the bytes of the present chunk end, and whether a value in them was passed on. */
  #limit = 0;
  #hasPassedOn = false;

  constructor(reply: (reply: MetaReply) => void) {
    this.#reply = reply;
  }

  /** Whether part of a line or a value has arrived. */
  get isPartial(): boolean {
    return this.#value !== undefined || this.#rest !== undefined;
  }

  /** Bytes that the present value still lacks. */
  get missing(): number {
    return this.#value === undefined ? 0 : this.#wanted - this.#filled;
  }

  /**
   * Reads the first `length` bytes. Returns whether a value was passed on in them; if not, their memory can be used again.
   * Throws on bytes that are not replies: the connection is then unusable.
   */
  feed(arrived: Buffer, length = arrived.length): boolean {
    let chunk = arrived;
    let at = 0;
    this.#limit = length;
    this.#hasPassedOn = false;
    if (this.#value !== undefined) {
      at = this.#fill(chunk, 0);
      if (at === INCOMPLETE) return false;
    } else if (this.#rest !== undefined) {
      chunk = Buffer.concat([this.#rest, arrived.subarray(0, length)]);
      this.#limit = chunk.length;
      this.#rest = undefined;
    }
    while (at < this.#limit) {
      const next = this.#line(chunk, at);
      if (next === INCOMPLETE) {
        if (this.#value === undefined) this.#rest = Buffer.from(chunk.subarray(at, this.#limit));
        break;
      }
      at = next;
    }
    return this.#hasPassedOn;
  }

  /** One line, and the value behind it; returns where the next one begins. */
  #line(chunk: Buffer, start: number): number {
    const feed = lineFeed(chunk, start, this.#limit);
    if ((feed < 0 ? this.#limit : feed) - start > LONGEST_LINE) throw new Error("an endless line");
    if (feed < 0) return INCOMPLETE;
    const end = feed - 1;
    if (end < start || chunk[end] !== CR) throw new Error("a line that does not end in CR LF");
    this.opaque = -1;
    this.cas = "";
    if (chunk[start] === LETTER.V && chunk[start + 1] === LETTER.A && chunk[start + 2] === SPACE) {
      return this.#valueLine(chunk, start + 3, end);
    }
    const code = codeOf(chunk, start, end);
    this.code = code;
    const after = start + code.length;
    if (code.length === 2) this.#flags(chunk, after, end);
    this.text = code.length === 2 || after === end ? "" : chunk.toString("latin1", after + 1, end);
    this.#deliver(NOTHING, 0, 0);
    return feed + 1;
  }

  #valueLine(chunk: Buffer, start: number, end: number): number {
    let size = 0;
    let at = start;
    for (; at < end && chunk[at] !== SPACE; at++) size = size * 10 + digit(chunk[at] as number);
    if (at === start || size > LARGEST_VALUE) throw new Error("a value without a valid size");
    this.#flags(chunk, at, end);
    this.code = "VA";
    this.text = "";
    const from = end + 2;
    if (from + size + 2 <= this.#limit) {
      this.#hasPassedOn = true;
      this.#whole(chunk, from, from + size);
      return from + size + 2;
    }
    this.#value = Buffer.allocUnsafe(Math.min(size + 2, FIRST_RESERVE));
    this.#filled = 0;
    this.#wanted = size + 2;
    return this.#fill(chunk, from);
  }

  /** Only the flags O and c are requested. */
  #flags(chunk: Buffer, start: number, end: number): void {
    for (let at = start; at < end; at++) {
      if (chunk[at] !== SPACE) continue;
      const flag = chunk[at + 1];
      if (flag === LETTER.O) {
        let opaque = 0;
        for (at += 2; at < end && chunk[at] !== SPACE; at++)
          opaque = opaque * 10 + digit(chunk[at] as number);
        this.opaque = opaque;
        at--;
      } else if (flag === LETTER.c) {
        const from = at + 2;
        for (at = from; at < end && chunk[at] !== SPACE; at++) digit(chunk[at] as number);
        this.cas = chunk.toString("latin1", from, at);
        at--;
      }
    }
  }

  #fill(chunk: Buffer, start: number): number {
    const end = Math.min(start + this.#wanted - this.#filled, this.#limit);
    const filled = this.#filled + end - start;
    const value = this.#room(filled);
    chunk.copy(value, this.#filled, start, end);
    this.#filled = filled;
    if (filled < this.#wanted) return INCOMPLETE;
    this.#value = undefined;
    this.#whole(value, 0, filled - 2);
    return end;
  }

  #room(needed: number): Buffer {
    const present = this.#value as Buffer;
    if (needed <= present.length) return present;
    const grown = Buffer.allocUnsafe(Math.min(this.#wanted, Math.max(needed, present.length * 2)));
    present.copy(grown, 0, 0, this.#filled);
    this.#value = grown;
    return grown;
  }

  #whole(bytes: Buffer, start: number, end: number): void {
    if (bytes[end] !== CR || bytes[end + 1] !== LF) throw new Error("a value longer than it claims");
    this.#deliver(bytes, start, end);
  }

  #deliver(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.#reply(this);
    this.bytes = NOTHING;
  }
}

const LONGEST_CODE = "CLIENT_ERROR".length;

/** Most lines are short: a loop beats a call into the runtime. */
function lineFeed(chunk: Buffer, start: number, limit: number): number {
  const near = Math.min(limit, start + 32);
  for (let at = start; at < near; at++) if (chunk[at] === LF) return at;
  if (near === limit) return INCOMPLETE;
  const far = chunk.subarray(near, limit).indexOf(LF);
  return far < 0 ? INCOMPLETE : near + far;
}

function codeOf(chunk: Buffer, start: number, end: number): string {
  const [a, b] = [chunk[start], chunk[start + 1]];
  if (end - start === 2 || chunk[start + 2] === SPACE) {
    if (a === LETTER.H && b === LETTER.D) return "HD";
    if (a === LETTER.E && b === LETTER.N) return "EN";
    if (a === LETTER.M && b === LETTER.N) return "MN";
  }
  const text = chunk.toString("latin1", start, Math.min(end, start + LONGEST_CODE + 1));
  const space = text.indexOf(" ");
  const code = space < 0 ? text : text.slice(0, space);
  if (!CODES.has(code)) throw new Error("an unknown reply");
  return code;
}

function digit(byte: number): number {
  const value = byte - ZERO;
  if (value < 0 || value > 9) throw new Error("an invalid number");
  return value;
}
