// CacheMetrics: passes what caches count, and what the application measures itself, to any number of collectors.

import { type Clock, systemClock } from "../../core/clock.ts";
import { type Collector, isSending, type MetricTags, sendsTo } from "../../core/collector.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { withDeadline } from "../../core/resilience/with-deadline.ts";
import { CATALOGUE } from "../catalogue.ts";
import { Feed } from "./feed.ts";
import { type CollectorFailures, type FailureReason, GuardedCollector } from "./guarded-collector.ts";
import { isReading, type MetricSource, type MetricsView, readFrom, Sources } from "./source.ts";
import type { CountedSeries } from "./totals.ts";

export class NoOpCollector implements Collector {
  increment(): void {}
  gauge(): void {}
  histogram(): void {}
  timing(): void {}
}

/** A collector that buffers, or holds resources open. */
interface ClosableCollector extends Collector {
  flush?(): unknown;
  close?(): unknown;
}

/** How long `flush()` and `close()` wait for a collector. */
const MAX_WAIT_MS = 15_000;

const METHODS = ["increment", "gauge", "histogram", "timing"] as const;

/**
 * Sends measurements to collectors. A collector that fails affects neither the cache nor the others.
 *
 * @example
 * ```ts
 * const metrics = new CacheMetrics([new PullCollector({ port: 9464 }), new PushCollector()]);
 * const cache = new XCache({ kvUrl: "redis://localhost:6379/0", metrics });
 * cache.startMetricsCollection();
 * ```
 */
export class CacheMetrics implements Collector {
  readonly #collectors: readonly GuardedCollector[];
  readonly #fed: readonly GuardedCollector[];
  readonly #sources = new Sources();
  readonly #feed: Feed | undefined;
  readonly #reportedFailures = new Map<string, number>();
  readonly #clock: Clock;
  #isReportPending = false;

  /** Throws ConfigError for an invalid collector. `clock` is for tests. */
  constructor(collectors: readonly Collector[] = [new NoOpCollector()], clock: Clock = systemClock) {
    this.#clock = clock;
    this.#collectors = requireCollectors(collectors).map(
      (collector) => new GuardedCollector(collector, () => this.#onFailure()),
    );
    this.#fed = this.#collectors.filter(
      ({ collector }) => !isReading(collector) && collector.constructor !== NoOpCollector,
    );
    warnOfDoubleCounts(collectors);
    const view: MetricsView = { sources: this.#sources, failed: () => this.#failedSeries() };
    for (const { collector } of this.#collectors) if (isReading(collector)) collector[readFrom](view);
    if (this.#fed.length > 0) this.#feed = new Feed(this.#sources, this.#feedTarget());
  }

  /** Adds `value` (default 1) to an application counter. Like the other three, it never throws and never waits. */
  increment(metric: string, value = 1, tags?: MetricTags): void {
    for (const each of this.#collectors) each.call("increment", metric, value, tags);
  }

  gauge(metric: string, value: number, tags?: MetricTags): void {
    for (const each of this.#collectors) each.call("gauge", metric, value, tags);
  }

  histogram(metric: string, value: number, tags?: MetricTags): void {
    for (const each of this.#collectors) each.call("histogram", metric, value, tags);
  }

  /** `value` is in seconds. */
  timing(metric: string, value: number, tags?: MetricTags): void {
    for (const each of this.#collectors) each.call("timing", metric, value, tags);
  }

  /** Measurements lost by each collector, in constructor order. */
  get failures(): readonly CollectorFailures[] {
    return this.#collectors.map(({ failures }) => failures);
  }

  /** Passes on everything counted so far and flushes collectors that buffer. Never rejects; ends after at most 15 s. */
  async flush(): Promise<void> {
    this.#feed?.flush();
    await this.#each("flush");
  }

  /** `flush`, then closes endpoints and sockets of the collectors. Never rejects; ends after at most 15 s. */
  async close(): Promise<void> {
    this.#feed?.flush();
    await this.#each("close");
  }

  /** Attaches a cache; returns a function that detaches it. @internal */
  attach(source: MetricSource): () => void {
    this.#sources.add(source);
    this.#feed?.attach(source);
    return () => {
      this.#feed?.detach(source);
      this.#sources.remove(source);
    };
  }

  #feedTarget(): ConstructorParameters<typeof Feed>[1] {
    return {
      increment: ({ dotted }, value, tags) => {
        for (const each of this.#fed) each.call("increment", dotted, value, tags);
      },
      gauge: ({ dotted }, value, tags) => {
        for (const each of this.#fed) each.call("gauge", dotted, value, tags);
      },
      histogram: ({ dotted }, value, tags, rate) => {
        for (const each of this.#fed) {
          each.call("histogram", dotted, value, tags, rate < 1 ? rate : undefined);
        }
      },
    };
  }

  /** Reported to the other collectors in a microtask, since the failing call may itself be such a report. */
  #onFailure(): void {
    if (this.#isReportPending || this.#fed.length < 2) return;
    this.#isReportPending = true;
    queueMicrotask(() => {
      this.#reportFailures();
      this.#isReportPending = false;
    });
  }

  #reportFailures(): void {
    for (const { id, metric, tags, value } of this.#failedSeries()) {
      const more = value - (this.#reportedFailures.get(id) ?? 0);
      this.#reportedFailures.set(id, value);
      if (more <= 0) continue;
      for (const each of this.#fed) {
        if (each.name !== tags?.collector) each.call("increment", metric.dotted, more, tags);
      }
    }
  }

  #failedSeries(): CountedSeries[] {
    const reasons: readonly FailureReason[] = ["thrown", "rejected", "hung"];
    return this.failures.flatMap(({ collector, ...counts }, at) =>
      reasons
        .filter((reason) => counts[reason] > 0)
        .map((reason) => ({
          id: `${at} ${reason}`,
          metric: CATALOGUE.collectorErrors,
          tags: { collector, reason },
          value: counts[reason],
        })),
    );
  }

  async #each(method: "flush" | "close"): Promise<void> {
    const done = this.#collectors.map(async ({ collector }) => {
      try {
        await (collector as ClosableCollector)[method]?.();
      } catch {
        // Not counted: no measurement was lost.
      }
    });
    await withDeadline(this.#clock, MAX_WAIT_MS, Promise.all(done), () => undefined);
  }
}

const wrapped = new WeakMap<Collector, CacheMetrics>();

/** The given CacheMetrics, or one wrapped around the given collector, the same each time. @internal */
export function metricsOf(given: Collector): CacheMetrics {
  if (given instanceof CacheMetrics) return given;
  let metrics = wrapped.get(given);
  if (metrics === undefined) {
    metrics = new CacheMetrics([given]);
    wrapped.set(given, metrics);
  }
  return metrics;
}

function requireCollectors(collectors: unknown): readonly Collector[] {
  if (!Array.isArray(collectors)) throw invalid("collectors must be an array", collectors);
  for (const collector of collectors as unknown[]) {
    const isOne =
      typeof collector === "object" &&
      collector !== null &&
      METHODS.every((method) => typeof (collector as Record<string, unknown>)[method] === "function");
    if (!isOne) throw invalid(`each collector must be an object with ${METHODS.join(", ")}`, collector);
  }
  return [...new Set(collectors as Collector[])];
}

/** Two objects, since the same one twice counts once. */
function warnOfDoubleCounts(collectors: readonly Collector[]): void {
  const places = new Set<unknown>();
  for (const { [sendsTo]: target } of new Set(collectors.filter(isSending))) {
    if (places.has(target.place)) {
      process.emitWarning(
        `two collectors of one CacheMetrics send to ${target.name}: everything is counted twice there. Pass one of them; it serves any number of caches.`,
        "XCacheWarning",
      );
    }
    places.add(target.place);
  }
}

const invalid = (expected: string, arrived: unknown): ConfigError =>
  new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
