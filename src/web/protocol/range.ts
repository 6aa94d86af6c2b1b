// A single byte range of a complete stored body (RFC 9110, 14.2).

import type { RequestInfo } from "../message/exchange.ts";
import { isSameStrongTag } from "./etag.ts";

export interface ByteRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** The range requested from a body of `length` bytes; undefined: ignore the field and send the whole body. */
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

/** Whether If-Range is absent or names the stored representation (RFC 9110, 13.1.5). */
export function isRangeOfThis(
  request: RequestInfo,
  etag: string | undefined,
  lastModified: string | undefined,
): boolean {
  const condition = request.header("if-range");
  if (condition === undefined) return true;
  if (etag !== undefined && isSameStrongTag(condition, etag)) return true;
  return lastModified !== undefined && condition === lastModified;
}
