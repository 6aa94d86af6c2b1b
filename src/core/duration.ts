// Durations: a number of seconds, or a text such as "500ms", "30s", "5m", "2h" or "7d".

/** A number of seconds, or a text such as `"500ms"`, `"30s"`, `"5m"`, `"2h"` or `"7d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const TEXT = /^(\d{1,15}(?:\.\d{1,9})?)(ms|[smhd])$/;

/** For messages: completes "a number of seconds, ...". */
export const OR_TEXT = 'or a text such as "500ms", "30s" or "5m"';

/** Texts are mostly literals in the code of an application, and some are read at every hit. */
const MOST_KNOWN = 256;
const known = new Map<string, number>();

function parse(text: string): number | undefined {
  const parts = TEXT.exec(text);
  if (parts === null) return undefined;
  const seconds = (Number(parts[1]) * UNIT_MS[parts[2]!]!) / 1_000;
  if (known.size < MOST_KNOWN) known.set(text, seconds);
  return seconds;
}

/** The seconds of a text; anything else as it is, for the caller to check. */
export function toSeconds(duration: unknown): unknown {
  if (typeof duration !== "string") return duration;
  return known.get(duration) ?? parse(duration) ?? duration;
}

const UNITS_DOWN = Object.keys(UNIT_MS).reverse();

/** The text for a number of seconds, in the largest unit that needs no fraction. */
export function textOf(seconds: number): string {
  const ms = Math.round(seconds * 1_000);
  const unit = UNITS_DOWN.find((each) => ms % UNIT_MS[each]! === 0) ?? "ms";
  return `${ms / UNIT_MS[unit]!}${unit}`;
}

const YEAR_SECONDS = 365 * 86_400;
/** A ttl from here on may have been meant as milliseconds. */
export const HOUR_MS = 3_600_000;
let hasWarned = false;

/** Warns once of a ttl that was probably meant as milliseconds: above a year, or 3,600,000 and its multiples. */
export function warnOfMilliseconds(seconds: number, name: string): void {
  if (hasWarned || seconds === Number.POSITIVE_INFINITY) return;
  if (seconds <= YEAR_SECONDS && seconds % HOUR_MS !== 0) return;
  hasWarned = true;
  const days = Math.round(seconds / 86_400);
  process.emitWarning(`${name}: ${seconds} is a number of seconds, ${days} days.`, {
    type: "XCacheWarning",
    code: "XCACHE_TTL_UNIT",
    detail: `If milliseconds were meant, write ${seconds / 1_000} or "${seconds}ms". If not, "${textOf(seconds)}" means the same and does not warn.`,
  });
}
