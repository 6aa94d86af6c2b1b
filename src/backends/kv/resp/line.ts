// The types of RESP3 and the values of single-line replies.
import { type Reply, ReplyError } from "./reply.ts";

const CR = 13;
const LF = 10;
const LETTER = { K: 75, O: 79, f: 102, t: 116 } as const;

/** The first byte of a reply. */
export const TYPE = {
  simple: 43,
  error: 45,
  integer: 58,
  bulk: 36,
  list: 42,
  none: 95,
  double: 44,
  boolean: 35,
  bigNumber: 40,
  bulkError: 33,
  verbatim: 61,
  map: 37,
  set: 126,
  push: 62,
  attribute: 124,
} as const;

/** `+OK`, the most frequent reply. */
export function isOk(chunk: Buffer, start: number): boolean {
  return chunk[start + 1] === LETTER.O && chunk[start + 2] === LETTER.K && isLineEnd(chunk, start + 3);
}

export function isLineEnd(chunk: Buffer, at: number): boolean {
  return chunk[at] === CR && chunk[at + 1] === LF;
}

export function isLineType(type: number): boolean {
  return (
    type === TYPE.simple ||
    type === TYPE.error ||
    type === TYPE.none ||
    type === TYPE.boolean ||
    type === TYPE.double ||
    type === TYPE.bigNumber
  );
}

/** The value between the type byte and the line end. */
export function lineValue(type: number, chunk: Buffer, start: number, end: number): Reply {
  switch (type) {
    case TYPE.error:
      return new ReplyError(chunk.toString("utf8", start, end));
    case TYPE.simple:
      return chunk.toString("utf8", start, end);
    case TYPE.none:
      if (end > start) throw new Error("a null with content");
      return null;
    case TYPE.boolean: {
      const letter = chunk[start];
      if (end - start !== 1 || (letter !== LETTER.t && letter !== LETTER.f))
        throw new Error("a malformed boolean");
      return letter === LETTER.t;
    }
    case TYPE.double:
      return double(chunk.toString("latin1", start, end));
    default:
      return bigNumber(chunk.toString("latin1", start, end));
  }
}

/** The integer that was parsed as `approximate`, without loss of precision. */
export function exact(approximate: number, chunk: Buffer, start: number, end: number): number | bigint {
  return Number.isSafeInteger(approximate) ? approximate : bigNumber(chunk.toString("latin1", start, end));
}

function bigNumber(text: string): bigint {
  if (!/^[+-]?\d+$/.test(text)) throw new Error("a malformed number");
  return BigInt(text.startsWith("+") ? text.slice(1) : text);
}

function double(text: string): number {
  if (text === "inf" || text === "+inf") return Number.POSITIVE_INFINITY;
  if (text === "-inf") return Number.NEGATIVE_INFINITY;
  if (/^-?nan$/i.test(text)) return Number.NaN;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) throw new Error("a malformed number");
  return Number(text);
}
