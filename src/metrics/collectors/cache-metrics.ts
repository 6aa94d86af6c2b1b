// CacheMetrics: hands what caches count, and what the application measures itself, to any number of collectors.
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Collector, MetricTags } from "../../core/collector.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { withDeadline } from "../../core/resilience/with-deadline.ts";
import { CATALOGUE } from "../catalogue.ts";
import { Feed } from "./feed.ts";
import { type CollectorFailures, type FailureReason, GuardedCollector } from "./guarded-collector.ts";
import { NoOpCollector } from "./noop.ts";
import { isReading, type MetricsView, readFrom } from "./reading-collector.ts";
import { type MetricSource, Sources } from "./source.ts";
import type { CountedSeries } from "./totals.ts";

/** A collector that keeps something back, or holds something open. */
interface LastingCollector extends Collector {
  flush?(): unknown;
  close?(): unknown;
}

/** How long `flush()` and `close()` wait for a collector. */
const LONGEST_WAIT_MS = 15_000;

const METHODS = ["increment", "gauge", "histogram", "timing"] as const;

export class CacheMetrics implements Collector {
  readonly #collectors: readonly GuardedCollector[];
  readonly #told: readonly GuardedCollector[];
  readonly #sources = new Sources();
  readonly #feed: Feed | undefined;
  readonly #toldFailures = new Map<string, number>();
  readonly #clock: Clock;
  #isFailing = false;

  /** Throws ConfigError when one of them is no collector. `clock` is for tests. */
  constructor(collectors: readonly Collector[] = [new NoOpCollector()], clock: Clock = systemClock) {
    this.#clock = clock;
    this.#collectors = requireCollectors(collectors).map(
      (collector) => new GuardedCollector(collector, () => this.#failed()),
    );
    this.#told = this.#collectors.filter(
      ({ collector }) => !isReading(collector) && collector.constructor !== NoOpCollector,
    );
    const view: MetricsView = { sources: this.#sources, failed: () => this.#failedSeries() };
    for (const { collector } of this.#collectors) if (isReading(collector)) collector[readFrom](view);
    if (this.#told.length > 0) this.#feed = new Feed(this.#sources, this.#teller());
  }

  /** Adds `value` (default 1) to a counter of the application's own. Like all four: never throws, never waits. */
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

  /** What each collector did not take, in the order they were given. */
  get failures(): readonly CollectorFailures[] {
    return this.#collectors.map(({ failures }) => failures);
  }

  /** Tells the collectors what was counted until now, and has those that keep something back send it. Never rejects, and ends after 15 s. */
  async flush(): Promise<void> {
    this.#feed?.tell();
    await this.#each("flush");
  }

  /** `flush`, and closes what the collectors have open: endpoints and sockets. Never rejects, and ends after 15 s. */
  async close(): Promise<void> {
    this.#feed?.tell();
    await this.#each("close");
  }

  /** A cache reports here from now on; returns how to stop. @internal */
  attach(source: MetricSource): () => void {
    this.#sources.add(source);
    this.#feed?.attach(source);
    return () => {
      this.#feed?.detach(source);
      this.#sources.remove(source);
    };
  }

  #teller(): ConstructorParameters<typeof Feed>[1] {
    return {
      increment: ({ dotted }, value, tags) => {
        for (const each of this.#told) each.call("increment", dotted, value, tags);
      },
      gauge: ({ dotted }, value, tags) => {
        for (const each of this.#told) each.call("gauge", dotted, value, tags);
      },
      histogram: ({ dotted }, value, tags, rate) => {
        for (const each of this.#told) {
          each.call("histogram", dotted, value, tags, rate < 1 ? rate : undefined);
        }
      },
    };
  }

  /** Others are told; not while telling them, for one of them may be failing at it. */
  #failed(): void {
    if (this.#isFailing || this.#told.length < 2) return;
    this.#isFailing = true;
    queueMicrotask(() => {
      this.#tellFailures();
      this.#isFailing = false;
    });
  }

  #tellFailures(): void {
    for (const { id, metric, tags, value } of this.#failedSeries()) {
      const more = value - (this.#toldFailures.get(id) ?? 0);
      this.#toldFailures.set(id, value);
      if (more <= 0) continue;
      for (const each of this.#told) {
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
        await (collector as LastingCollector)[method]?.();
      } catch {
        // It is counted nowhere: nothing was measured.
      }
    });
    await withDeadline(this.#clock, LONGEST_WAIT_MS, Promise.all(done), () => undefined);
  }
}

const wrapped = new WeakMap<Collector, CacheMetrics>();

/** The CacheMetrics of what a configuration names: itself, or one made for a collector, the same each time. @internal */
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
  if (!Array.isArray(collectors)) throw wrong("collectors must be a list", collectors);
  for (const collector of collectors as unknown[]) {
    const isOne =
      typeof collector === "object" &&
      collector !== null &&
      METHODS.every((method) => typeof (collector as Record<string, unknown>)[method] === "function");
    if (!isOne) throw wrong(`each collector must be an object with ${METHODS.join(", ")}`, collector);
  }
  return [...new Set(collectors as Collector[])];
}

const wrong = (expected: string, arrived: unknown): ConfigError =>
  new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
