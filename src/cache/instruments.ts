// What is measured and told of one cache object: wired here, read and added to by the cache.

import type { Namespace } from "../core/namespace.ts";
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
  readonly #place: Namespace;

  constructor(root: CacheLifecycle, place: Namespace) {
    this.#root = root;
    this.#place = place;
    this.telemetry = new Telemetry(root.clock, root.config.keyPrefix);
    this.history = new History({
      recorder: this.telemetry.recorder,
      ledger: place.counters,
      clock: root.clock,
      retentionMs: root.config.metricsRetentionDays * DAY_MS,
    });
    traceIfRegistered();
  }

  comprehensive(): ComprehensiveMetrics {
    return this.telemetry.recorder.comprehensive(this.#storeFacts());
  }

  /** The cache as the root knows it; `use` says whether it may use the store from now on. */
  member(use: (isOpen: boolean) => void): Member {
    return {
      source: this.#source(),
      history: this.history,
      observer: this.telemetry.observer(this.#place),
      opened: () => {
        use(true);
        this.telemetry.connection("connected");
      },
      closed: (wasOpen) => {
        use(false);
        this.telemetry.recorder.stop();
        if (wasOpen) this.telemetry.connection("disconnected");
      },
    };
  }

  #source(): MetricSource {
    return {
      recorder: this.telemetry.recorder,
      clock: this.#root.clock,
      backend: this.#root.store.backend.name,
      place: this.#place,
      facts: () => this.#storeFacts(),
      usage: () => this.#place.usage(false),
    };
  }

  #storeFacts(): ReturnType<MetricSource["facts"]> {
    const { store } = this.#root;
    const pool = poolState(store);
    return {
      circuitBreakerOpen: store.breaker !== undefined && store.breaker.state !== "closed",
      poolUtilization: poolUtilization(pool),
      poolWaiting: pool.waiting,
      memoryUsage: store.fill(),
    };
  }
}
