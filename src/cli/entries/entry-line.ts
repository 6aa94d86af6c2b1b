// One entry as a line of JSON, written by export and read by import and warm.
import type { EntryInfo } from "../../cache/entry-pages.ts";
import { isPlainRecord } from "../../core/wire.ts";
import { CommandError, EXIT } from "../exit-code.ts";
import { jsonText } from "../terminal/escape.ts";
import { fromJson, toJson } from "./json-value.ts";
import type { Line } from "./line-source.ts";

export interface LineEntry {
  readonly key: string;
  readonly value: unknown;
  /** Seconds; undefined: the default ttl. 0 or less: it has expired. */
  readonly ttl: number | undefined;
  readonly tags: readonly string[];
}

/** `now`: wall-clock time. */
export function entryLine(
  { key, ttl, tags }: Pick<EntryInfo, "key" | "ttl" | "tags">,
  value: unknown,
  now: number,
): string {
  const expires = Number.isFinite(ttl);
  return jsonText({
    key,
    value: toJson(value),
    ttl_seconds: expires ? Math.round(ttl * 1_000) / 1_000 : null,
    expires_at: expires ? new Date(now + ttl * 1_000).toISOString() : null,
    tags,
  });
}

/** Ignores unknown fields. Throws CommandError naming the line. */
export function readEntryLine({ text, number }: Line, file: string, now: number): LineEntry {
  const invalid = (what: string): never => {
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
    return invalid("not valid JSON");
  }
  if (!isPlainRecord(json)) return invalid("not a JSON object");
  const { key, tags = [] } = json;
  if (typeof key !== "string" || key === "") return invalid("key must be a non-empty string");
  if (!Object.hasOwn(json, "value")) return invalid("value is missing");
  if (!Array.isArray(tags) || !tags.every((tag) => typeof tag === "string" && tag !== ""))
    return invalid("tags must be a list of non-empty strings");
  const ttl =
    ttlOf(json, now) ?? invalid("ttl_seconds must be a number above 0 or null, expires_at a date or null");
  return { key, value: readValue(json.value, invalid), ttl: ttl === "default" ? undefined : ttl, tags };
}

/** `expires_at` takes precedence over `ttl_seconds`, which was relative to the export. */
function ttlOf(json: Record<string, unknown>, now: number): number | "default" | undefined {
  const { expires_at: end, ttl_seconds: ttl } = json;
  if (end === null || (end === undefined && ttl === null)) return Number.POSITIVE_INFINITY;
  if (end !== undefined) {
    const at = typeof end === "string" ? Date.parse(end) : Number.NaN;
    return Number.isNaN(at) ? undefined : (at - now) / 1_000;
  }
  if (ttl === undefined) return "default";
  return typeof ttl === "number" && ttl > 0 ? ttl : undefined;
}

function readValue(json: unknown, invalid: (what: string) => never): unknown {
  try {
    return fromJson(json);
  } catch (error) {
    return invalid(`value cannot be read: ${(error as Error).message}`);
  }
}
