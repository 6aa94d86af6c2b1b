// What a fleet did in one minute, by function and by what was invalidated, as a record that processes add to.
import type { FunctionStats } from "../../core/stats.ts";
import { MOST_TAGS, OTHER_TAGS } from "../recording/change-marks.ts";
import { MOST_FUNCTIONS, OTHER_FUNCTIONS } from "../recording/function-counts.ts";
import { Histogram } from "../recording/histogram.ts";

/** The latest ttl in milliseconds, then a row of `FunctionCounts`: calls, missed, coalesced, stale, errors, load times. */
export type FunctionRow = readonly number[];

export interface Activity {
  readonly functions: ReadonlyMap<string, FunctionRow>;
  /** Invalidations by tag, marked by `#`, or `pattern`, `clear`, `other`. */
  readonly invalidations: ReadonlyMap<string, number>;
}

const FIRST_COUNT = 1;
const LOAD_SUM = 6;
const FIRST_BUCKET = 7;

export function mergeActivity(one: Activity, other: Activity): Activity {
  return {
    functions: merged(one.functions, other.functions, MOST_FUNCTIONS, OTHER_FUNCTIONS, addRows),
    invalidations: merged(one.invalidations, other.invalidations, MOST_TAGS, OTHER_TAGS, (a, b) => a + b),
  };
}

/** At most `most` names, then the rest under one. */
function merged<T>(
  one: ReadonlyMap<string, T>,
  other: ReadonlyMap<string, T>,
  most: number,
  rest: string,
  add: (one: T, other: T) => T,
): ReadonlyMap<string, T> {
  const all = new Map(one);
  for (const [name, value] of other) {
    const own = all.has(name) || all.size < most ? name : rest;
    const present = all.get(own);
    all.set(own, present === undefined ? value : add(present, value));
  }
  return all;
}

function addRows(one: FunctionRow, other: FunctionRow): FunctionRow {
  const longer = one.length >= other.length ? one : other;
  return longer.map((_, at) =>
    at < FIRST_COUNT ? (other[at] ?? 0) || (one[at] ?? 0) : (one[at] ?? 0) + (other[at] ?? 0),
  );
}

/** Undefined for a record of another version, or a damaged one. */
export function activityOf(value: unknown): Activity | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { functions, invalidations } = value as Partial<Activity>;
  if (!(functions instanceof Map) || !(invalidations instanceof Map)) return undefined;
  const isNumber = (item: unknown): boolean => typeof item === "number";
  const areRows = [...functions.values()].every((row) => Array.isArray(row) && row.every(isNumber));
  return areRows && [...invalidations.values()].every(isNumber) ? { functions, invalidations } : undefined;
}

/** Decodes a row. */
export function functionStats(name: string, row: FunctionRow): Omit<FunctionStats, "history"> {
  const [ttlMs = 0, calls = 0, missed = 0, coalesced = 0, stale = 0, errors = 0] = row;
  const loadTime = new Histogram();
  loadTime.sum = row[LOAD_SUM] ?? 0;
  for (let at = 0; at < loadTime.counts.length; at++) {
    loadTime.counts[at] = row[FIRST_BUCKET + at] ?? 0;
    loadTime.count += loadTime.counts[at] as number;
  }
  const hits = Math.max(0, calls - missed);
  return {
    name,
    calls,
    hits,
    hitRate: calls === 0 ? 0 : hits / calls,
    loads: loadTime.count,
    coalesced,
    staleServed: stale,
    errors,
    avgLoadTime: loadTime.mean(),
    p95LoadTime: loadTime.quantile(0.95),
    ttlSeconds: ttlMs / 1_000,
  };
}
