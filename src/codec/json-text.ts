// JSON text for values that JSON represents exactly.
import { CodecError } from "../core/errors.ts";
import { damaged } from "./byte-reader.ts";

/**
 * Whether parsing its JSON text returns the same value. Requires a result of `copyChecked`: plain data, with no accessor
 * or toJSON that could return something else the second time.
 */
export function isExactInJson(value: unknown): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      if (value === null) return true;
      if (Array.isArray(value)) return everyPart(value);
      return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isExactInJson);
    default:
      return false;
  }
}

/** A hole reads as undefined and ends the loop, so a long sparse array costs nothing. */
function everyPart(array: readonly unknown[]): boolean {
  for (let i = 0; i < array.length; i++) if (!isExactInJson(array[i])) return false;
  return true;
}

/** Throws CodecError for text that is not JSON or nested too deep. */
export function parseJson(bytes: Uint8Array, maxDepth: number): unknown {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch (cause) {
    throw damaged("it is not JSON text", cause);
  }
  if (isDeeperThan(maxDepth, value)) {
    throw new CodecError("VALUE_TOO_LARGE", `A stored value is nested deeper than ${maxDepth}, the limit.`);
  }
  return value;
}

function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const part of Array.isArray(value) ? value : Object.values(value)) {
    if (isDeeperThan(levels - 1, part)) return true;
  }
  return false;
}
