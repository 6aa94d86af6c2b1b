// A value as the dashboard shows it: as text, with secrets hidden, and cut before it becomes large.
import { inspect } from "node:util";
import { typeOf } from "../cache/entry-pages.ts";

export interface ShownValue {
  readonly type: string;
  readonly text: string;
  /** There is more than is shown. */
  readonly cut: boolean;
}

const LONGEST_TEXT = 64 * 1024;
const LONGEST_LIST = 1_000;
const DEEPEST = 20;

const REDACTED = "[redacted]";
const CUT = "[cut]";
const SECRET =
  /pass(word|wd|phrase)|secret|token|authorization|cookie|api[-_]?key|private[-_]?key|credential|session[-_]?id/i;

export type Redact = (path: readonly string[], value: unknown) => boolean;

/** How much of a value is looked at. */
interface Extent {
  readonly items: number;
  readonly depth: number;
  /** Parts and characters that are left. */
  left: number;
  isCut: boolean;
}

export function shownValue(value: unknown, redact: Redact): ShownValue {
  // A part takes at least one character of the text.
  const extent: Extent = { items: LONGEST_LIST, depth: DEEPEST, left: LONGEST_TEXT + 1, isCut: false };
  const text = textOf(redacted(value, redact, [], extent));
  const isCut = extent.isCut || (value instanceof Uint8Array && value.length > DUMPED_BYTES);
  return { type: typeOf(value), text: text.slice(0, LONGEST_TEXT), cut: isCut || text.length > LONGEST_TEXT };
}

/** The whole value for a download, also with secrets hidden. */
export function wholeValue(value: unknown, redact: Redact): Uint8Array | string {
  if (value instanceof Uint8Array) return redact([], value) ? REDACTED : value;
  const all = Number.POSITIVE_INFINITY;
  const shown = redacted(value, redact, [], { items: all, depth: all, left: all, isCut: false });
  return typeof shown === "string"
    ? shown
    : inspect(shown, { depth: null, maxArrayLength: null, maxStringLength: null });
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value.slice(0, LONGEST_TEXT + 1);
  if (value instanceof Uint8Array) return hexDump(value);
  return inspect(value, {
    depth: DEEPEST,
    maxArrayLength: LONGEST_LIST,
    maxStringLength: LONGEST_TEXT,
    breakLength: 72,
    compact: false,
  });
}

const DUMPED_BYTES = 4_096;

/** Sixteen bytes a line, with their text. */
function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, DUMPED_BYTES); at += 16) {
    const part = Buffer.from(bytes.buffer, bytes.byteOffset + at, Math.min(16, bytes.length - at));
    const hex = part.toString("hex").replace(/../g, "$& ").padEnd(48);
    const text = part.toString("latin1").replace(/[^\x20-\x7e]/g, ".");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex} ${text}`);
  }
  return lines.join("\n");
}

/** A copy in which secrets are replaced, as far as it is looked at. */
function redacted(value: unknown, redact: Redact, path: readonly string[], extent: Extent): unknown {
  const name = path.at(-1);
  if ((name !== undefined && SECRET.test(name)) || redact(path, value)) return REDACTED;
  extent.left -= 1 + (typeof value === "string" ? value.length : 0);
  if (extent.left < 0) {
    extent.isCut = true;
    return typeof value === "string" ? value.slice(0, LONGEST_TEXT) : CUT;
  }
  if (typeof value !== "object" || value === null) return value;
  if (path.length > extent.depth) {
    extent.isCut = true;
    return CUT;
  }
  const inner = (key: unknown, item: unknown): unknown =>
    redacted(item, redact, [...path, String(key)], extent);
  if (Array.isArray(value)) return first(value, extent).map((item, at) => inner(at, item));
  if (value instanceof Map)
    return new Map(first(value, extent).map(([key, item]) => [key, inner(key, item)]));
  if (value instanceof Set) return new Set(first(value, extent).map((item, at) => inner(at, item)));
  if (Object.prototype.toString.call(value) !== "[object Object]") return value;
  return Object.fromEntries(
    first(Object.keys(value), extent).map((key) => [
      key,
      inner(key, (value as Record<string, unknown>)[key]),
    ]),
  );
}

/** No more than may still be looked at. */
function first<T>(items: Iterable<T>, extent: Extent): T[] {
  const taken: T[] = [];
  const most = Math.min(extent.items, extent.left);
  for (const item of items) {
    if (taken.length >= most) {
      extent.isCut = true;
      break;
    }
    taken.push(item);
  }
  return taken;
}
