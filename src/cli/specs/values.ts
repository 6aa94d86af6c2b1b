// Parsers for option values.
import { InvalidArgumentError } from "commander";
import { parseDuration } from "../terminal/format-duration.ts";

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= most) return number;
    throw new InvalidArgumentError(
      most === Number.MAX_SAFE_INTEGER
        ? `It must be a whole number of at least ${least}.`
        : `It must be a whole number from ${least} to ${most}.`,
    );
  };
}

/** A finite number of seconds. */
export function duration(text: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined && Number.isFinite(seconds)) return seconds;
  throw new InvalidArgumentError("It must be a duration above 0, such as 90, 1.5s, 5m, 1h or 7d.");
}

/** Like `duration`, but `never` is allowed. */
export function lifetime(text: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined) return seconds;
  throw new InvalidArgumentError("It must be a duration above 0, such as 90, 5m, 1h or 7d, or never.");
}

/** `--namespace a --namespace b`. */
export function repeated(text: string, previous: unknown): readonly string[] {
  return [...((previous as readonly string[] | undefined) ?? []), text];
}

/** `a,b`, repeatable; a JSON array for tags that contain a comma. Never empty, which some commands would take for all entries. */
export function tagList(text: string, previous: unknown): readonly string[] {
  const tags = tagsIn(text);
  if (tags.length > 0) return [...((previous as readonly string[] | undefined) ?? []), ...tags];
  throw new InvalidArgumentError("It must name at least one tag.");
}

function tagsIn(text: string): readonly string[] {
  if (!text.startsWith("[")) return text.split(",").filter((tag) => tag !== "");
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.every((tag) => typeof tag === "string")) return list;
  } catch {
    // Reported below.
  }
  throw new InvalidArgumentError('It must be comma-separated tags, or a JSON array such as ["a,b"].');
}
