// What one cache object counts: plain fields for the hit path, a histogram per operation for samples.
import type { Clock } from "../core/clock.ts";
import { BackendError, type ErrorCode } from "../core/errors.ts";
import type { CacheStats, ComprehensiveMetrics, OperationMetrics } from "../core/records.ts";
import type { SpaceUsage } from "../core/space.ts";
import { Histogram } from "./histogram.ts";

export class OperationRecord {
  count = 0;
  errors = 0;
  readonly latency = new Histogram();
}

/** Facts that only the store knows. */
export interface StoreFacts {
  readonly circuitBreakerOpen: boolean;
  readonly poolUtilization: number;
  readonly memoryUsage: number;
}

interface Mark {
  readonly at: number;
  readonly operations: number;
  readonly evictions: number;
}

/** How far back the rates look, and how often a mark is set once collection has started. */
const RATE_WINDOW_MS = 60_000;
const MARK_EVERY_MS = 10_000;

/** The store was not reached or did not answer; a load that takes too long, or a call after disconnect(), is none of these. */
const OUT_OF_REACH: ReadonlySet<ErrorCode> = new Set(["CONNECTION_FAILED", "OPERATION_TIMEOUT"]);

export class Recorder {
  hits = 0;
  misses = 0;
  sets = 0;
  deletes = 0;
  invalidations = 0;
  errors = 0;
  evictions = 0;
  connectionFailures = 0;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #operations = new Map<string, OperationRecord>();
  #marks: Mark[] = [];
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAt = clock.now();
  }

  operation(name: string): OperationRecord {
    let record = this.#operations.get(name);
    if (record === undefined) {
      record = new OperationRecord();
      this.#operations.set(name, record);
    }
    return record;
  }

  failed(operation: string, error: Error): void {
    this.errors++;
    this.operation(operation).errors++;
    if (error instanceof BackendError && OUT_OF_REACH.has(error.code)) this.connectionFailures++;
  }

  hitRate(): number {
    const asked = this.hits + this.misses;
    return asked === 0 ? 0 : this.hits / asked;
  }

  /** Sets marks for the rates until `stop`; idempotent. */
  start(): void {
    if (this.#stop !== undefined) return;
    const tick = (): void => {
      const timer = this.#clock.after(MARK_EVERY_MS, () => {
        this.#mark();
        tick();
      });
      this.#stop = () => timer.cancel();
    };
    this.#mark();
    tick();
  }

  stop(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#marks = [];
  }

  stats(usage: SpaceUsage): CacheStats {
    return {
      hitRate: this.hitRate(),
      totalHits: this.hits,
      totalMisses: this.misses,
      totalSets: this.sets,
      totalDeletes: this.deletes,
      totalInvalidations: this.invalidations,
      totalErrors: this.errors,
      totalEvictions: this.evictions,
      totalKeys: usage.keys,
      totalMemoryBytes: usage.bytes,
      memoryUsageMb: usage.bytes / (1024 * 1024),
      uptimeSeconds: (this.#clock.now() - this.#startedAt) / 1000,
      approximate: usage.approximate,
    };
  }

  comprehensive(facts: StoreFacts): ComprehensiveMetrics {
    const all = new Histogram();
    const byOperation: Record<string, OperationMetrics> = {};
    for (const [name, record] of this.#operations) {
      all.merge(record.latency);
      byOperation[name] = { count: record.count, errors: record.errors, ...latencies(record.latency) };
    }
    const totalOperations = this.#totalOperations();
    const since = this.#marks[0] ?? { at: this.#startedAt, operations: 0, evictions: 0 };
    const seconds = Math.max(0.001, (this.#clock.now() - since.at) / 1000);
    return {
      hitRate: this.hitRate(),
      totalOperations,
      errorRate: totalOperations === 0 ? 0 : Math.min(1, this.errors / totalOperations),
      ...latencies(all),
      operationsPerSecond: (totalOperations - since.operations) / seconds,
      byOperation,
      connectionFailures: this.connectionFailures,
      circuitBreakerOpen: facts.circuitBreakerOpen,
      poolUtilization: facts.poolUtilization,
      memoryUsage: facts.memoryUsage,
      evictionRate: (this.evictions - since.evictions) / seconds,
    };
  }

  #totalOperations(): number {
    let total = 0;
    for (const record of this.#operations.values()) total += record.count;
    return total;
  }

  #mark(): void {
    const at = this.#clock.now();
    this.#marks.push({ at, operations: this.#totalOperations(), evictions: this.evictions });
    while (this.#marks.length > 1 && (this.#marks[1] as Mark).at <= at - RATE_WINDOW_MS) this.#marks.shift();
  }
}

function latencies(histogram: Histogram): Omit<OperationMetrics, "count" | "errors"> {
  return {
    avgResponseTime: histogram.mean(),
    p50: histogram.quantile(0.5),
    p95: histogram.quantile(0.95),
    p99: histogram.quantile(0.99),
  };
}
