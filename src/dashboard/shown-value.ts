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
const SECRET =
  /pass(word|wd|phrase)|secret|token|authorization|cookie|api[-_]?key|private[-_]?key|credential|session[-_]?id/i;

export type Redact = (path: readonly string[], value: unknown) => boolean;

export function shownValue(value: unknown, redact: Redact): ShownValue {
  const type = typeOf(value);
  const shown = redacted(value, redact, []);
  const text = textOf(shown);
  return { type, text: text.slice(0, LONGEST_TEXT), cut: text.length > LONGEST_TEXT || isCut(value) };
}

/** The whole value for a download, also with secrets hidden. */
export function wholeValue(value: unknown, redact: Redact): Uint8Array | string {
  if (value instanceof Uint8Array) return redact([], value) ? REDACTED : value;
  const shown = redacted(value, redact, []);
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

const isCut = (value: unknown): boolean =>
  (value instanceof Uint8Array && value.length > DUMPED_BYTES) ||
  (Array.isArray(value) && value.length > LONGEST_LIST) ||
  ((value instanceof Map || value instanceof Set) && value.size > LONGEST_LIST);

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

/** A copy in which secrets are replaced; as deep and as long as is shown. */
function redacted(value: unknown, redact: Redact, path: readonly string[]): unknown {
  const name = path.at(-1);
  if ((name !== undefined && SECRET.test(name)) || redact(path, value)) return REDACTED;
  if (typeof value !== "object" || value === null || path.length > DEEPEST) return value;
  const inner = (key: unknown, item: unknown): unknown => redacted(item, redact, [...path, String(key)]);
  if (Array.isArray(value)) return value.slice(0, LONGEST_LIST + 1).map((item, at) => inner(at, item));
  if (value instanceof Map) return new Map(first(value).map(([key, item]) => [key, inner(key, item)]));
  if (value instanceof Set) return new Set(first(value).map((item, at) => inner(at, item)));
  if (Object.prototype.toString.call(value) !== "[object Object]") return value;
  return Object.fromEntries(
    Object.entries(value)
      .slice(0, LONGEST_LIST + 1)
      .map(([key, item]) => [key, inner(key, item)]),
  );
}

function first<T>(items: Iterable<T>): T[] {
  const taken: T[] = [];
  for (const item of items) {
    if (taken.length > LONGEST_LIST) break;
    taken.push(item);
  }
  return taken;
}
