// The key of a cached read: its tables, and a digest of everything that determines its result.
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import { mayDenoteNow } from "../sql/sql-functions.ts";

/** undefined: a value has no exact text, or one like "now" whose meaning changes. */
export function readKey(
  fingerprint: string,
  text: string,
  values: readonly unknown[],
  tables: readonly string[],
): string | undefined {
  const texts = values.map(valueText);
  if (texts.includes(undefined)) return undefined;
  const digest = nodeCrypto().hash("sha256", JSON.stringify([fingerprint, text, texts]), "base64url");
  return `sql:${tables.join(",")}:${digest}`;
}

/** Different values give different texts; undefined where that is not certain. */
function valueText(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return mayDenoteNow(value) ? undefined : `s${value}`;
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
  if (value instanceof Date) return `d${value.getTime()} ${value.getTimezoneOffset()}`;
  if (ArrayBuffer.isView(value)) {
    return `x${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64url")}`;
  }
  if (Array.isArray(value)) {
    const texts = value.map(valueText);
    return texts.includes(undefined) ? undefined : `a${JSON.stringify(texts)}`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  // A class instance may be serialised in its own way.
  if (prototype !== Object.prototype && prototype !== null) return undefined;
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
