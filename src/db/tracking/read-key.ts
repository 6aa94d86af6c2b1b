// The key of a cached read: its tables, and a digest of everything that determines its result.
import { nodeCrypto, types } from "../../core/lazy-builtin.ts";
import { isLiteral } from "../../core/snapshot.ts";
import { sql } from "./connection-state.ts";

/** Larger values would hold the event loop while a key is made of them. */
const MOST_CHARACTERS = 1_000_000;
const MOST_VALUES = 20_000;

/** undefined: a value has no exact text, or one like "now" whose meaning changes, or the text or the values are too large. */
export function readKey(
  fingerprint: string,
  text: string,
  values: readonly unknown[],
  tables: readonly string[],
): string | undefined {
  const texts = text.length > MOST_CHARACTERS ? undefined : textsOf(values);
  if (texts === undefined) return undefined;
  const parts = [fingerprint, withoutComments(text), texts];
  const digest = nodeCrypto().hash("sha256", JSON.stringify(parts), "base64url");
  return `sql:${tables.join(",")}:${digest}`;
}

/** Without the comments around it, which carry the trace of a request. One with another inside is left as it is. */
function withoutComments(statement: string): string {
  const text = statement.trim();
  const isOne = (comment: string): boolean => !/\/\*|\*\//.test(comment.slice(2, -2));
  const start = text.endsWith("*/") ? text.lastIndexOf("/*") : -1;
  if (start >= 0 && text.length - start >= 4 && isOne(text.slice(start))) {
    return withoutComments(text.slice(0, start));
  }
  const end = text.startsWith("/*") ? text.indexOf("*/", 2) + 2 : 0;
  return end >= 4 && isOne(text.slice(0, end)) ? withoutComments(text.slice(end)) : text;
}

function textsOf(values: readonly unknown[]): readonly string[] | undefined {
  if (values.length > MOST_VALUES) return undefined;
  const texts: string[] = [];
  let characters = 0;
  for (const value of values) {
    const text = valueText(value);
    characters += text?.length ?? 0;
    if (text === undefined || characters > MOST_CHARACTERS) return undefined;
    texts.push(text);
  }
  return texts;
}

/** Different values give different texts; undefined where that is not certain. */
function valueText(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return sql().mayDenoteNow(value) ? undefined : `s${value}`;
    case "number":
      return Object.is(value, -0) ? "n-0" : `n${value}`;
    case "bigint":
      return `i${value}`;
    case "boolean":
      return `b${value}`;
    // Drivers send undefined as NULL.
    case "undefined":
      return "0";
    case "object":
      return value === null ? "0" : objectText(value);
    default:
      return undefined;
  }
}

function objectText(value: object): string | undefined {
  // Drivers send the local time and its offset.
  if (types.isDate(value)) return `d${value.getTime()} ${value.getTimezoneOffset()}`;
  if (ArrayBuffer.isView(value)) {
    if (value.byteLength > MOST_CHARACTERS) return undefined;
    return `x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64url")}`;
  }
  if (Array.isArray(value)) {
    const texts = textsOf(value);
    return texts && `a${JSON.stringify(texts)}`;
  }
  // A class instance may be serialised in its own way.
  if (!isLiteral(value)) return undefined;
  return "toPostgres" in value ? undefined : jsonText(value);
}

/** Plain objects are sent as JSON. */
function jsonText(value: object): string | undefined {
  try {
    return `j${JSON.stringify(value)}`;
  } catch {
    return undefined;
  }
}
