// Telemetry, history and metric source of one cache object.

import { alertsOf } from "../core/alert-state.ts";
import { silentFeeds } from "../core/attached-feeds.ts";
import type { Invalidation, Namespace } from "../core/namespace.ts";
import type { ComprehensiveMetrics } from "../core/stats.ts";
import { poolState, poolUtilization } from "../health/health.ts";
import type { MetricSource } from "../metrics/collectors/source.ts";
import { History } from "../metrics/history/history.ts";
import { traceIfRegistered } from "../metrics/opentelemetry/spans.ts";
import { Telemetry } from "../metrics/recording/telemetry.ts";
import type { CacheLifecycle, Member } from "./lifecycle.ts";

const DAY_MS = 86_400_000;

export class Instruments {
  readonly telemetry: Telemetry;
  readonly history: History;
  readonly #root: CacheLifecycle;
  readonly #namespace: Namespace;

  /** `cache`: the cache object, for what others know of it. */
  constructor(root: CacheLifecycle, namespace: Namespace, cache: object) {
    this.#root = root;
    this.#namespace = namespace;
    this.telemetry = new Telemetry(root.clock, root.config.keyPrefix);
    this.history = new History({
      recorder: this.telemetry.recorder,
      functions: this.telemetry.functions,
      marks: this.telemetry.marks,
      counters: namespace.counters,
      records: namespace.records,
      breaker: () => root.store.breaker?.state ?? "closed",
      alerts: () => alertsOf(cache),
      clock: root.clock,
      retentionMs: root.config.metricsRetentionDays * DAY_MS,
    });
    traceIfRegistered();
  }

  comprehensive(): ComprehensiveMetrics {
    const measured = this.telemetry.recorder.comprehensive(this.#storeState());
    const { feeds } = this.#root;
    return feeds.size === 0 ? measured : { ...measured, silentFeeds: silentFeeds(feeds) };
  }

  /** When this process did it, else the minute in which any process last did; undefined where it is not known. */
  async invalidatedAt(what: Invalidation): Promise<number | undefined> {
    const own = this.telemetry.marks.lastInvalidated(what);
    if (own !== undefined || !this.#root.config.enableMetrics) return own;
    const { invalidations } = await this.history.activity(DAY_MS / 1_000);
    const marks = invalidations.filter(({ kind, tag }) =>
      kind === "tag" ? what.tags.includes(tag as string) : kind === "clear" && what.isCleared,
    );
    return marks.length === 0 ? undefined : Math.max(...marks.map(({ at }) => Date.parse(at)));
  }

  /** The cache as a member of its lifecycle; `use` is called when the store opens or closes. */
  member(use: (isOpen: boolean) => Promise<void> | undefined): Member {
    return {
      source: this.#source(),
      history: this.history,
      observer: this.telemetry.observer(this.#namespace),
      opened: () => {
        void use(true);
        this.telemetry.connection("connected");
      },
      closed: async (wasOpen) => {
        const closing = use(false);
        this.telemetry.recorder.stop();
        if (wasOpen) this.telemetry.connection("disconnected");
        await closing;
      },
    };
  }

  #source(): MetricSource {
    return {
      recorder: this.telemetry.recorder,
      clock: this.#root.clock,
      backend: this.#root.store.backend.name,
      namespace: this.#namespace,
      storeState: () => this.#storeState(),
      usage: () => this.#namespace.usage(false),
    };
  }

  #storeState(): ReturnType<MetricSource["storeState"]> {
    const { store } = this.#root;
    const pool = poolState(store);
    return {
      circuitBreakerOpen: store.breaker !== undefined && store.breaker.state !== "closed",
      poolUtilization: poolUtilization(pool),
      poolWaiting: pool.waiting,
      memoryUsage: store.memoryUsage(),
    };
  }
}
