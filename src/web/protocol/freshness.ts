// How long a response is fresh and how old it is already (RFC 9111, 4.2).

import { fieldOf, type HeaderList, linesOf } from "../message/header-list.ts";
import { type Directives, parseSeconds } from "./cache-control.ts";
import { parseHttpDate } from "./http-date.ts";

/** What the handler says about the lifetime, in seconds; undefined when it says nothing (RFC 9111, 4.2.1). */
export function statedLifetime(
  directives: Directives,
  isTargeted: boolean,
  headers: HeaderList,
  now: number,
): number | undefined {
  // For a shared cache s-maxage overrides max-age, and both override Expires (RFC 9111, 5.2.2.10 and 5.3).
  const seconds = directives.seconds("s-maxage") ?? directives.seconds("max-age");
  if (seconds !== undefined || isTargeted) return seconds;
  const lines = linesOf(headers, "expires");
  if (lines.length === 0) return undefined;
  // A date that is not one is in the past, `0` above all (RFC 9111, 5.3).
  const expires = lines.length === 1 ? parseHttpDate(lines[0]!, now) : undefined;
  if (expires === undefined) return 0;
  return Math.max(0, (expires - (dateOf(headers, now) ?? now)) / 1000);
}

/** Milliseconds; undefined where there is no valid Date. */
function dateOf(headers: HeaderList, now: number): number | undefined {
  const date = fieldOf(headers, "date");
  return date === undefined ? undefined : parseHttpDate(date, now);
}

/**
 * The age in milliseconds with which a response arrives (RFC 9111, 4.2.3). The time the handler took counts only if the
 * response came from a cache behind it: otherwise it was made here and is new.
 */
export function initialAgeMs(headers: HeaderList, requestedAt: number, now: number): number {
  const date = dateOf(headers, now);
  const apparent = date === undefined ? 0 : Math.max(0, now - date);
  const stated = ageOf(headers);
  if (stated === undefined) return apparent < 1000 ? 0 : apparent;
  return Math.max(apparent, stated * 1000 + (now - requestedAt));
}

/** The first value counts; one that is not a number is ignored (RFC 9111, 5.1). */
function ageOf(headers: HeaderList): number | undefined {
  return parseSeconds(linesOf(headers, "age")[0]?.split(",", 1)[0]?.trim());
}
