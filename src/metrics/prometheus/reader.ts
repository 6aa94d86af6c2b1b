// Reads each metric of the catalogue from the reporting caches.
import { onFirstUse } from "../../core/lazy-builtin.ts";
import { VERSION } from "../../version.ts";
import { CATALOGUE, type MetricId } from "../catalogue.ts";
import type { MetricsView, StoreGauges } from "../collectors/source.ts";
import { Totals } from "../collectors/totals.ts";
import type { Sample } from "./family.ts";

export type Reader = (views: readonly MetricsView[]) => readonly Sample[] | Promise<readonly Sample[]>;

const plain = (value: number): readonly Sample[] => [{ tags: undefined, value }];

function totalsOf(views: readonly MetricsView[]): Totals {
  const totals = new Totals();
  for (const { sources } of views) totals.add(sources.totals());
  return totals;
}

/** Series of a counter. Those without labels exist from the start: rate() needs an initial value. */
function counted(id: MetricId): Reader {
  return (views) =>
    totalsOf(views)
      .counters()
      .filter(({ metric }) => metric === CATALOGUE[id]);
}

/** The worst value over all stores; no series if no cache reports. */
function worst(name: keyof StoreGauges): Reader {
  return (views) => {
    const gauges = views.flatMap(({ sources }) => sources.gauges() ?? []);
    return gauges.length === 0 ? [] : plain(Math.max(...gauges.map((each) => each[name])));
  };
}

/** The sum over all stores; no series if one of them fails to report. */
function used(name: "keys" | "bytes"): Reader {
  return async (views) => {
    const usages = await Promise.all(
      views.filter(({ sources }) => sources.size > 0).map(({ sources }) => sources.usage()),
    );
    const known = usages.filter((usage) => usage !== undefined);
    if (known.length === 0 || known.length < usages.length) return [];
    return plain(known.reduce((sum, usage) => sum + usage[name], 0));
  };
}

/** No cache counts it: feeds send it to the collector. */
const sent: Reader = () => [];

export const readers = onFirstUse(
  (): Readonly<Record<MetricId, Reader>> => ({
    gets: counted("gets"),
    hits: counted("hits"),
    misses: counted("misses"),
    storeHits: counted("storeHits"),
    sets: counted("sets"),
    deletes: counted("deletes"),
    invalidations: counted("invalidations"),
    evictions: counted("evictions"),
    errors: counted("errors"),
    collectorErrors: (views) => views.flatMap((view) => view.failed()),
    hitRate: (views) => plain(totalsOf(views).hitRate()),
    sizeBytes: used("bytes"),
    keysCount: used("keys"),
    memoryUsage: worst("memoryUsage"),
    circuitBreakerOpen: worst("circuitBreakerOpen"),
    poolUtilization: worst("poolUtilization"),
    poolWaiting: worst("poolWaiting"),
    info: (views) =>
      [...new Set(views.flatMap(({ sources }) => sources.backends()))].map((backend) => ({
        tags: { version: VERSION, backend },
        value: 1,
      })),
    operationDuration: (views) =>
      [...totalsOf(views).durations].map(([operation, value]) => ({ tags: { operation }, value })),
    feedAlive: sent,
    feedLag: sent,
    feedInvalidations: sent,
    feedGaps: sent,
    feedLeaderChanges: sent,
  }),
);
