// Counters of one cache object: plain fields for the hit path, a histogram per operation.
import type { Clock } from "../../core/clock.ts";
import type { ErrorCode } from "../../core/error-codes.ts";
import { BackendError } from "../../core/errors.ts";
import type { NamespaceUsage } from "../../core/namespace.ts";
import type { CacheStats, ComprehensiveMetrics, OperationMetrics } from "../../core/stats.ts";
import { ErrorCounts } from "./error-count.ts";
import { Histogram } from "./histogram.ts";
import { OperationRecord } from "./operation-record.ts";

/** Gauges that only the store knows. */
export interface StoreState {
  readonly circuitBreakerOpen: boolean;
  readonly poolUtilization: number;
  readonly memoryUsage: number;
}

interface Mark {
  readonly at: number;
  readonly operations: number;
  readonly hits: number;
  readonly misses: number;
  readonly errors: number;
  readonly evictions: number;
  readonly latency: Histogram;
}

/** The window of the rates, and how often a mark is set. */
const RATE_WINDOW_MS = 60_000;
const MARK_EVERY_MS = 10_000;

/** The store was unreachable or did not answer. Slow loads and calls after disconnect() do not count. */
const UNREACHABLE_CODES: ReadonlySet<ErrorCode> = new Set([
  "CONNECTION_FAILED",
  "PROTOCOL_VIOLATED",
  "OPERATION_TIMEOUT",
]);

/** Passes on what is recorded. */
export interface Reporter {
  /** Called for the first count after `reported()`. */
  counted(): void;
  timed(operation: string, seconds: number, weight: number): void;
  /** Called periodically, for gauges. */
  marked(): void;
}

export class Recorder {
  hits = 0;
  misses = 0;
  /** Hits answered by the store rather than in the process. */
  storeHits = 0;
  /** Loads that ran. */
  loads = 0;
  /** Calls that were answered by a load of another call. */
  coalesced = 0;
  /** Calls that were answered by a stale value. */
  staleServed = 0;
  sets = 0;
  deletes = 0;
  invalidations = 0;
  errors = 0;
  evictions = 0;
  connectionFailures = 0;
  readonly errorCounts = new ErrorCounts();
  /** True while a reporter waits for the next count; then call `wake`. */
  isAwaited = false;
  readonly #reporters = new Set<Reporter>();
  readonly #clock: Clock;
  readonly #birth: Mark;
  readonly #operations = new Map<string, OperationRecord>();
  /** The first is the newest mark older than the window, or the oldest one. */
  #marks: Mark[] = [];
  #lastErrorAt = Number.NEGATIVE_INFINITY;
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#birth = this.#reading();
  }

  /** Every operation called so far, and always get and set. */
  get operations(): ReadonlyMap<string, OperationRecord> {
    return this.#operations;
  }

  /** Returns a function that removes it. */
  addReporter(reporter: Reporter): () => void {
    this.#reporters.add(reporter);
    this.isAwaited = true;
    return () => {
      this.#reporters.delete(reporter);
      this.isAwaited &&= this.#reporters.size > 0;
    };
  }

  /** Called by a reporter that has passed on the counts and waits for more. */
  reported(): void {
    this.isAwaited = this.#reporters.size > 0;
  }

  wake(): void {
    this.isAwaited = false;
    for (const reporter of this.#reporters) reporter.counted();
  }

  time(operation: string, seconds: number, weight: number): void {
    this.operation(operation).latency.add(seconds, weight);
    for (const reporter of this.#reporters) reporter.timed(operation, seconds, weight);
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
    this.#lastErrorAt = this.#clock.now();
    this.operation(operation).errors++;
    this.errorCounts.count(operation, error);
    if (this.isAwaited) this.wake();
    if (error instanceof BackendError && UNREACHABLE_CODES.has(error.code)) this.connectionFailures++;
  }

  hitRate(): number {
    const reads = this.hits + this.misses;
    return reads === 0 ? 0 : this.hits / reads;
  }

  /** Sets marks for the rates periodically until `stop`, even if nobody reads them; idempotent. */
  start(): void {
    if (this.#stop !== undefined) return;
    this.#marks = [];
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

  stats(usage: NamespaceUsage): CacheStats {
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
      uptimeSeconds: (this.#clock.now() - this.#birth.at) / 1000,
      approximate: usage.approximate,
      scope: usage.scope ?? "prefix",
    };
  }

  comprehensive(state: StoreState): ComprehensiveMetrics {
    const byOperation: Record<string, OperationMetrics> = {};
    for (const [name, record] of this.#operations) {
      byOperation[name] = { count: record.count, errors: record.errors, ...latencies(record.latency) };
    }
    const now = this.#reading();
    const since = this.#windowStart(now.at);
    if (this.#stop === undefined) this.#markIfDue(now);
    const seconds = Math.max(0.001, (now.at - since.at) / 1000);
    const recent = new Histogram();
    recent.merge(now.latency);
    recent.merge(since.latency, -1);
    return {
      // Without reads in the window, fall back to the lifetime rate.
      hitRate: hitRate(now, since) ?? this.hitRate(),
      totalOperations: now.operations,
      errorRate: this.#errorRate(now, since),
      ...latencies(recent.count > 0 ? recent : now.latency),
      operationsPerSecond: (now.operations - since.operations) / seconds,
      byOperation,
      connectionFailures: this.connectionFailures,
      circuitBreakerOpen: state.circuitBreakerOpen,
      poolUtilization: state.poolUtilization,
      memoryUsage: state.memoryUsage,
      evictionRate: (this.evictions - since.evictions) / seconds,
    };
  }

  #totalOperations(): number {
    let total = 0;
    for (const record of this.#operations.values()) total += record.count;
    return total;
  }

  #reading(): Mark {
    const { hits, misses, errors, evictions } = this;
    const latency = new Histogram();
    for (const record of this.#operations.values()) latency.merge(record.latency);
    return {
      at: this.#clock.now(),
      operations: this.#totalOperations(),
      hits,
      misses,
      errors,
      evictions,
      latency,
    };
  }

  #mark(): void {
    this.#keep(this.#reading());
    for (const reporter of this.#reporters) reporter.marked();
  }

  /** Without `start`, repeated calls of `comprehensive` set the marks. */
  #markIfDue(reading: Mark): void {
    const last = this.#marks.at(-1);
    if (last === undefined || reading.at - last.at >= MARK_EVERY_MS) this.#keep(reading);
  }

  #keep(reading: Mark): void {
    this.#marks.push(reading);
    const oldest = reading.at - RATE_WINDOW_MS;
    while (this.#marks.length > 1 && (this.#marks[1] as Mark).at <= oldest) this.#marks.shift();
  }

  /** Start of the rate window: the newest mark at least as old as the window, else where collecting or counting began. */
  #windowStart(at: number): Mark {
    const first = this.#stop === undefined ? undefined : this.#marks[0];
    return this.#marks.findLast((mark) => mark.at <= at - RATE_WINDOW_MS) ?? first ?? this.#birth;
  }

  /** Errors before the window do not count, however few operations followed. */
  #errorRate(now: Mark, since: Mark): number {
    const operations = now.operations - since.operations;
    if (operations === 0 || now.at - this.#lastErrorAt >= RATE_WINDOW_MS) return 0;
    return Math.min(1, (now.errors - since.errors) / operations);
  }
}

function hitRate(now: Mark, since: Mark): number | undefined {
  const hits = now.hits - since.hits;
  const reads = hits + now.misses - since.misses;
  return reads > 0 ? hits / reads : undefined;
}

function latencies(histogram: Histogram): Omit<OperationMetrics, "count" | "errors"> {
  return {
    avgResponseTime: histogram.mean(),
    p50: histogram.quantile(0.5),
    p95: histogram.quantile(0.95),
    p99: histogram.quantile(0.99),
  };
}
