// What a cache counts in one minute, as a row of numbers that can be summed over processes.
import type { CounterRow } from "../../core/counters.ts";
import type { FleetMinute } from "../../core/stats.ts";
import { Histogram, LATENCY_BUCKETS } from "../recording/histogram.ts";
import type { Recorder } from "../recording/recorder.ts";

/** In row order. Append only: the store may hold rows of other versions. */
const COUNTS = ["hits", "misses", "sets", "deletes", "invalidations", "errors", "evictions"] as const;
type CountName = (typeof COUNTS)[number];

/** After the latency buckets, for the same reason. */
const LATER_COUNTS = ["storeHits", "staleServed", "loads", "coalesced"] as const;

/** Row layout: number of processes, the counts, operations, latency sum, latency buckets, the later counts, milliseconds of activity. */
const FIRST_COUNT = 1;
const OPERATIONS = FIRST_COUNT + COUNTS.length;
const LATENCY_SUM = OPERATIONS + 1;
const FIRST_BUCKET = LATENCY_SUM + 1;
const FIRST_LATER = FIRST_BUCKET + LATENCY_BUCKETS.length + 1;
const ACTIVE_MS = FIRST_LATER + LATER_COUNTS.length;

/** Everything a recorder has counted so far. */
export function rowOf(recorder: Recorder): CounterRow {
  const latency = new Histogram();
  let operations = 0;
  for (const record of recorder.operations.values()) {
    operations += record.count;
    latency.merge(record.latency);
  }
  return [
    0,
    ...COUNTS.map((name) => recorder[name]),
    operations,
    latency.sum,
    ...latency.counts,
    ...LATER_COUNTS.map((name) => recorder[name]),
  ];
}

/** The difference of two rows; undefined if nothing was counted. */
export function rowSince(now: CounterRow, before: CounterRow): CounterRow | undefined {
  const row = now.map((value, at) => value - (before[at] ?? 0));
  return row.some((value) => value !== 0) ? row : undefined;
}

/** The same row, counted for one more process. */
export const withOneMoreProcess = (row: CounterRow): CounterRow => [(row[0] ?? 0) + 1, ...row.slice(1)];

/** The row of a process that has counted for this long. */
export function activityRow(milliseconds: number): CounterRow {
  const row = new Array<number>(ACTIVE_MS + 1).fill(0);
  row[ACTIVE_MS] = Math.round(milliseconds);
  return row;
}

/** Decodes a row. A row of another version may be shorter or longer. */
export function minuteOf(row: CounterRow, at: number): FleetMinute {
  const latency = latencyOf(row);
  const count = (name: CountName): number => row[FIRST_COUNT + COUNTS.indexOf(name)] ?? 0;
  const later = (name: (typeof LATER_COUNTS)[number]): number =>
    row[FIRST_LATER + LATER_COUNTS.indexOf(name)] ?? 0;
  const [hits, misses] = [count("hits"), count("misses")];
  return {
    at: new Date(at).toISOString(),
    processes: row[0] ?? 0,
    hitRate: hits + misses === 0 ? 0 : hits / (hits + misses),
    totalHits: hits,
    totalMisses: misses,
    totalSets: count("sets"),
    totalDeletes: count("deletes"),
    totalInvalidations: count("invalidations"),
    totalErrors: count("errors"),
    totalEvictions: count("evictions"),
    totalStoreHits: later("storeHits"),
    totalStaleServed: later("staleServed"),
    totalLoads: later("loads"),
    totalCoalesced: later("coalesced"),
    totalOperations: row[OPERATIONS] ?? 0,
    activeSeconds: (row[ACTIVE_MS] ?? 0) / 1_000,
    avgResponseTime: latency.mean(),
    p50: latency.quantile(0.5),
    p95: latency.quantile(0.95),
    p99: latency.quantile(0.99),
  };
}

function latencyOf(row: CounterRow): Histogram {
  const latency = new Histogram();
  latency.sum = row[LATENCY_SUM] ?? 0;
  for (let at = 0; at < latency.counts.length; at++) {
    latency.counts[at] = row[FIRST_BUCKET + at] ?? 0;
    latency.count += latency.counts[at] as number;
  }
  return latency;
}
