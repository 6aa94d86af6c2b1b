// The contract of a collector that is not told what caches count, but reads it when somebody asks for its figures.
import type { Collector } from "../../core/collector.ts";
import type { Sources } from "./source.ts";
import type { CountedSeries } from "./totals.ts";

export interface MetricsView {
  readonly sources: Sources;
  /** What collectors did not take, as counters. */
  failed(): readonly CountedSeries[];
}

/** A symbol, so that no method of a user's own collector is taken for it. */
export const readFrom = Symbol("readFrom");

export interface ReadingCollector extends Collector {
  [readFrom](view: MetricsView): void;
}

export function isReading(collector: Collector): collector is ReadingCollector {
  return typeof (collector as Partial<ReadingCollector>)[readFrom] === "function";
}
