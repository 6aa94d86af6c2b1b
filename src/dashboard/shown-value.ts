// A value as the dashboard shows it: as text, with secrets hidden, and cut before it becomes large.
import { inspect } from "node:util";
import { typeOf } from "../cache/entry-pages.ts";
import { errorFactsOf, errorFrom } from "../codec/error-object.ts";
import type { Preview } from "../core/namespace.ts";

export interface ShownValue {
  /** Undefined if it is not known. */
  readonly type?: string;
  readonly text: string;
  /** There is more than is shown. */
  readonly cut: boolean;
  /** Bytes of the value that were read, and that it has. */
  readonly read: number;
  readonly of: number;
  /** How many members the value has, where that is known. */
  readonly members?: number;
  /** Why nothing is shown. */
  readonly hidden?: string;
}

/** How much of a value is shown. */
export interface Shown {
  /** That are read, and characters of text. */
  readonly bytes: number;
  /** Members of each list. */
  readonly items: number;
  /** That are dumped of binary data. */
  readonly dumped: number;
}

export const FIRST: Shown = { bytes: 64 * 1024, items: 1_000, dumped: 4_096 };
/** What is shown on request; all of it is a download. */
export const MORE: Shown = { bytes: 1024 * 1024, items: 20_000, dumped: 128 * 1024 };
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

export function shownPreview(preview: Preview, redact: Redact, shown: Shown): ShownValue {
  const { beginning, unread, read, of } = preview;
  const isUnread = beginning === undefined || (beginning.value === undefined && !beginning.isWhole);
  if (isUnread) return { text: "", cut: true, read: 0, of, hidden: unread ?? "it can only be read whole" };
  const { value, members, isWhole } = beginning;
  // A part takes at least one character of the text.
  const extent: Extent = { items: shown.items, depth: DEEPEST, left: shown.bytes + 1, isCut: false };
  const text = textOf(redacted(value, redact, [], extent), shown);
  const isLong =
    ArrayBuffer.isView(value) && lengthOf(value) > (value instanceof Uint8Array ? shown.dumped : shown.items);
  return {
    type: typeOf(value),
    text: text.slice(0, shown.bytes),
    cut: !isWhole || extent.isCut || isLong || text.length > shown.bytes,
    read: isWhole ? of : Math.min(read, shown.bytes),
    of,
    ...(members !== undefined && { members }),
  };
}

const lengthOf = (view: ArrayBufferView): number => (view as { length?: number }).length ?? view.byteLength;

/** The whole value for a download, also with secrets hidden. */
export function wholeValue(value: unknown, redact: Redact): Uint8Array | string {
  if (value instanceof Uint8Array) return redact([], value) ? REDACTED : value;
  const all = Number.POSITIVE_INFINITY;
  const shown = redacted(value, redact, [], { items: all, depth: all, left: all, isCut: false });
  return typeof shown === "string"
    ? shown
    : inspect(shown, { depth: null, maxArrayLength: null, maxStringLength: null });
}

function textOf(value: unknown, shown: Shown): string {
  if (typeof value === "string") return value.slice(0, shown.bytes + 1);
  if (value instanceof Uint8Array) return hexDump(value, shown.dumped);
  return inspect(value, {
    depth: DEEPEST,
    maxArrayLength: shown.items,
    maxStringLength: shown.bytes,
    breakLength: 72,
    compact: false,
  });
}

/** Sixteen bytes a line, with their text. */
function hexDump(bytes: Uint8Array, most: number): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, most); at += 16) {
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
    return typeof value === "string" ? value.slice(0, FIRST.bytes) : CUT;
  }
  if (typeof value !== "object" || value === null) return value;
  if (path.length > extent.depth) {
    extent.isCut = true;
    return CUT;
  }
  const inner = (key: unknown, item: unknown): unknown =>
    redacted(item, redact, [...path, nameOf(key)], extent);
  if (Array.isArray(value)) return first(value, extent).map((item, at) => inner(at, item));
  if (value instanceof Map)
    return new Map(
      first(value, extent).map(([key, item]) => [isObject(key) ? inner("key", key) : key, inner(key, item)]),
    );
  if (value instanceof Set) return new Set(first(value, extent).map((item, at) => inner(at, item)));
  if (value instanceof Error && isObject(value.cause))
    return errorFrom({ ...errorFactsOf(value), cause: inner("cause", value.cause) });
  if (Object.prototype.toString.call(value) !== "[object Object]") return value;
  return Object.fromEntries(
    first(Object.keys(value), extent).map((key) => [
      key,
      inner(key, (value as Record<string, unknown>)[key]),
    ]),
  );
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The key of a Map may be an object with a `toString` of its own. */
const nameOf = (key: unknown): string => (isObject(key) ? Object.prototype.toString.call(key) : String(key));

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
