// What a cache counts in a minute, as a row of numbers that can be added up over processes.
import type { CounterRow } from "../../core/counters.ts";
import type { FleetMinute } from "../../core/stats.ts";
import { Histogram } from "../recording/histogram.ts";
import type { Recorder } from "../recording/recorder.ts";

/** In the order of the row. New ones are added at the end: rows of other versions are in the same store. */
const COUNTS = ["hits", "misses", "sets", "deletes", "invalidations", "errors", "evictions"] as const;
type CountName = (typeof COUNTS)[number];

/** Before the counts stands how many processes added; after them the operations and their latencies. */
const FIRST_COUNT = 1;
const OPERATIONS = FIRST_COUNT + COUNTS.length;
const LATENCY_SUM = OPERATIONS + 1;
const FIRST_BUCKET = LATENCY_SUM + 1;

/** Everything that a recorder has counted so far. */
export function rowOf(recorder: Recorder): CounterRow {
  const latency = new Histogram();
  let operations = 0;
  for (const record of recorder.operations.values()) {
    operations += record.count;
    latency.merge(record.latency);
  }
  return [0, ...COUNTS.map((name) => recorder[name]), operations, latency.sum, ...latency.counts];
}

/** What was counted since, as one process; undefined when nothing was. */
export function rowSince(now: CounterRow, before: CounterRow): CounterRow | undefined {
  const row = now.map((value, at) => value - (before[at] ?? 0));
  return row.some((value) => value !== 0) ? row : undefined;
}

/** The same, said by one process more. */
export const byOneMore = (row: CounterRow): CounterRow => [(row[0] ?? 0) + 1, ...row.slice(1)];

/** What a row says. A row of another version may be shorter or longer. */
export function minuteOf(row: CounterRow, at: number): FleetMinute {
  const latency = latencyOf(row);
  const count = (name: CountName): number => row[FIRST_COUNT + COUNTS.indexOf(name)] ?? 0;
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
    totalOperations: row[OPERATIONS] ?? 0,
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
