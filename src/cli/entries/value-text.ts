// Formats a value for people, and as raw bytes.
import { inspect } from "node:util";
import { escapeControls, jsonText, visibleLines } from "../terminal/escape.ts";
import { toJson } from "./json-value.ts";

/** Text unchanged, JSON indented, anything else as util.inspect prints it; all of it safe for a terminal. */
export function valueText(value: unknown, hasColours: boolean): string {
  if (typeof value === "string") return visibleLines(value);
  if (isJson(value)) return coloured(jsonText(value, 2), hasColours);
  const shown = inspect(value, {
    depth: 20,
    maxArrayLength: 1_000,
    maxStringLength: 100_000,
    breakLength: 100,
  });
  return visibleLines(shown);
}

/** Whether plain JSON represents it exactly. */
const isJson = (value: unknown): boolean => jsonText(toJson(value)) === jsonText(value);

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function coloured(json: string, hasColours: boolean): string {
  if (!hasColours) return json;
  return json.replace(TOKENS, (token, text?: string, colon?: string) => {
    if (text === undefined) return paint(33, token);
    return colon === undefined ? paint(32, text) : `${paint(34, text)}${colon}`;
  });
}

const paint = (colour: number, text: string): string => `\u001b[${colour}m${text}\u001b[39m`;

/** Text as UTF-8, bytes unchanged, anything else as JSON. */
export function rawValue(value: unknown): Uint8Array | string {
  if (typeof value === "string") return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return jsonText(toJson(value));
}

/** The type of a value in one word. */
export function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (typeof value !== "object") return typeof value;
  return escapeControls(Object.prototype.toString.call(value).slice(8, -1).toLowerCase());
}
