// One byte range out of a complete stored body (RFC 9110, 14.2).

import type { RequestFacts } from "../message/exchange.ts";
import { isSameStrongTag } from "./etag.ts";

export interface ByteRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** What a Range asks of a body of `length` bytes; undefined: ignore it and send everything. */
export function rangeOf(text: string, length: number): ByteRange | "unsatisfiable" | undefined {
  const parts = /^bytes=[ \t]*(\d{0,15})-(\d{0,15})[ \t]*$/i.exec(text);
  if (parts === null) return undefined;
  const [, first = "", last = ""] = parts;
  if (first === "") {
    if (last === "") return undefined;
    const suffix = Number(last);
    if (suffix === 0 || length === 0) return "unsatisfiable";
    return { start: Math.max(0, length - suffix), end: length };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return undefined;
  if (start >= length) return "unsatisfiable";
  return { start, end: last === "" ? length : Math.min(length, Number(last) + 1) };
}

/** Whether If-Range, where there is one, names the representation that is stored (RFC 9110, 13.1.5). */
export function isRangeOfThis(
  request: RequestFacts,
  etag: string | undefined,
  lastModified: string | undefined,
): boolean {
  const condition = request.header("if-range");
  if (condition === undefined) return true;
  if (etag !== undefined && isSameStrongTag(condition, etag)) return true;
  return lastModified !== undefined && condition === lastModified;
}
