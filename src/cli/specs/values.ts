// Reads what was written behind a flag.
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

/** Seconds that end. */
export function duration(text: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined && Number.isFinite(seconds)) return seconds;
  throw new InvalidArgumentError("It must be a duration above 0, such as 90, 1.5s, 5m, 1h or 7d.");
}

/** As `duration`, or `never`. */
export function lifetime(text: string): number {
  const seconds = parseDuration(text);
  if (seconds !== undefined) return seconds;
  throw new InvalidArgumentError("It must be a duration above 0, such as 90, 5m, 1h or 7d, or never.");
}

/** `--tag a --tag b`. */
export function repeated(text: string, before: unknown): readonly string[] {
  return [...((before as readonly string[] | undefined) ?? []), text];
}

/** `a,b`, once or several times; a JSON list for tags that hold a comma. */
export function tagList(text: string, before: unknown): readonly string[] {
  const earlier = (before as readonly string[] | undefined) ?? [];
  if (!text.startsWith("[")) return [...earlier, ...text.split(",").filter((tag) => tag !== "")];
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list) && list.every((tag) => typeof tag === "string")) return [...earlier, ...list];
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It must be tags between commas, or a JSON list such as ["a,b"].');
}
