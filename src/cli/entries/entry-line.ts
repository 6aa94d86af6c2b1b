// One entry as a line of JSON: what export writes, and import and warm read.
import type { Inspection } from "../../core/namespace.ts";
import { isPlainRecord } from "../../core/wire.ts";
import { CommandError } from "../command-error.ts";
import { EXIT } from "../exit-code.ts";
import { jsonText } from "../terminal/escape.ts";
import { fromJson, toJson } from "./json-value.ts";
import type { Line } from "./line-source.ts";

/** An entry to be stored. */
export interface LineEntry {
  readonly key: string;
  readonly value: unknown;
  /** Seconds; undefined: as usual. Not above 0: it has ended. */
  readonly ttl: number | undefined;
  readonly tags: readonly string[];
}

/** `now`: by the calendar. */
export function entryLine({ key, ttlMs, tags }: Inspection, value: unknown, now: number): string {
  const ends = Number.isFinite(ttlMs);
  return jsonText({
    key,
    value: toJson(value),
    ttl_seconds: ends ? Math.round(ttlMs) / 1_000 : null,
    expires_at: ends ? new Date(now + ttlMs).toISOString() : null,
    tags,
  });
}

/** Fields that are not known are left to whoever wrote them. Throws CommandError that names the line. */
export function readEntryLine({ text, number }: Line, file: string, now: number): LineEntry {
  const wrong = (what: string): never => {
    throw new CommandError(
      `${file}:${number}: ${what}`,
      'Each line must be an object such as {"key":"user:1","value":{"name":"Ada"},"ttl_seconds":600,"tags":["users"]}.',
      EXIT.failed,
    );
  };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return wrong("it is not JSON");
  }
  if (!isPlainRecord(json)) return wrong("it is not an object");
  const { key, tags = [] } = json;
  if (typeof key !== "string" || key === "") return wrong("key must be a non-empty string");
  if (!Object.hasOwn(json, "value")) return wrong("value is missing");
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === "string" && tag !== ""))
    return wrong("tags must be a list of non-empty strings");
  const ttl =
    ttlOf(json, now) ?? wrong("ttl_seconds must be a number above 0 or null, expires_at a date or null");
  return { key, value: readValue(json.value, wrong), ttl: ttl === "usual" ? undefined : ttl, tags };
}

/** When an entry ends counts for more than how long it was to live when it was written. */
function ttlOf(json: Record<string, unknown>, now: number): number | "usual" | undefined {
  const { expires_at: end, ttl_seconds: ttl } = json;
  if (end === null || (end === undefined && ttl === null)) return Number.POSITIVE_INFINITY;
  if (end !== undefined) {
    const at = typeof end === "string" ? Date.parse(end) : Number.NaN;
    return Number.isNaN(at) ? undefined : (at - now) / 1_000;
  }
  if (ttl === undefined) return "usual";
  return typeof ttl === "number" && ttl > 0 ? ttl : undefined;
}

function readValue(json: unknown, wrong: (what: string) => never): unknown {
  try {
    return fromJson(json);
  } catch (error) {
    return wrong(`value cannot be read: ${(error as Error).message}`);
  }
}
