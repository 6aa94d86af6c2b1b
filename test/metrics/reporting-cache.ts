// Sources of figures for the tests of collectors: a recorder in place of a cache.
import type { MetricSource } from "../../src/metrics/collectors/source.ts";
import { Telemetry } from "../../src/metrics/recording/telemetry.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

export interface ReportingCache {
  readonly telemetry: Telemetry;
  readonly clock: ManualClock;
  readonly source: MetricSource;
  /** The reported contents and state of the store; may be changed at any time. */
  readonly store: {
    keys: number;
    bytes: number;
    breaker: boolean;
    waiting: number;
    pool: number;
    memory: number;
    fails: boolean;
    asked: number;
  };
}

export function reportingCache(backend = "memory"): ReportingCache {
  const clock = new ManualClock();
  const telemetry = new Telemetry(clock);
  const store = {
    keys: 3,
    bytes: 700,
    breaker: false,
    waiting: 0,
    pool: 0,
    memory: 0,
    fails: false,
    asked: 0,
  };
  const source: MetricSource = {
    recorder: telemetry.recorder,
    clock,
    backend,
    namespace: {},
    storeState: () => ({
      circuitBreakerOpen: store.breaker,
      poolUtilization: store.pool,
      poolWaiting: store.waiting,
      memoryUsage: store.memory,
    }),
    usage: () => {
      store.asked++;
      if (store.fails) throw new Error("down");
      return { keys: store.keys, bytes: store.bytes, approximate: false };
    },
  };
  return { telemetry, clock, source, store };
}
