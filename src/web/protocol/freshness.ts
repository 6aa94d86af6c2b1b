// Freshness lifetime and initial age of a response (RFC 9111, 4.2).

import { fieldOf, type HeaderList, linesOf } from "../message/header-list.ts";
import { type Directives, parseSeconds } from "./cache-control.ts";
import { parseHttpDate } from "./http-date.ts";

/** The lifetime stated by the handler, in seconds; undefined if it states none (RFC 9111, 4.2.1). */
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
  // An invalid date, `0` above all, counts as past (RFC 9111, 5.3).
  const expires = lines.length === 1 ? parseHttpDate(lines[0]!, now) : undefined;
  if (expires === undefined) return 0;
  return Math.max(0, (expires - (dateOf(headers, now) ?? now)) / 1000);
}

/** Milliseconds; undefined without a valid Date. */
function dateOf(headers: HeaderList, now: number): number | undefined {
  const date = fieldOf(headers, "date");
  return date === undefined ? undefined : parseHttpDate(date, now);
}

/**
 * The age of a response on arrival, in milliseconds (RFC 9111, 4.2.3). The handler's response time counts only if an Age
 * field shows that an upstream cache supplied it: otherwise the response was generated just now.
 */
export function initialAgeMs(headers: HeaderList, requestedAt: number, now: number): number {
  const date = dateOf(headers, now);
  const apparent = date === undefined ? 0 : Math.max(0, now - date);
  const stated = ageOf(headers);
  if (stated === undefined) return apparent < 1000 ? 0 : apparent;
  return Math.max(apparent, stated * 1000 + (now - requestedAt));
}

/** The first value counts; an invalid one is ignored (RFC 9111, 5.1). */
function ageOf(headers: HeaderList): number | undefined {
  return parseSeconds(linesOf(headers, "age")[0]?.split(",", 1)[0]?.trim());
}
