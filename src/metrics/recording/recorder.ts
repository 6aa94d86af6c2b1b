// What one cache object counts: plain fields for the hit path, a histogram per operation for samples.
import type { Clock } from "../../core/clock.ts";
import { BackendError, type ErrorCode } from "../../core/errors.ts";
import type { NamespaceUsage } from "../../core/namespace.ts";
import type { CacheStats, ComprehensiveMetrics, OperationMetrics } from "../../core/stats.ts";
import { ErrorCounts } from "./error-count.ts";
import { Histogram } from "./histogram.ts";
import { OperationRecord } from "./operation-record.ts";

/** Facts that only the store knows. */
export interface StoreFacts {
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

/** How far back the rates look, and how often a mark is set. */
const RATE_WINDOW_MS = 60_000;
const MARK_EVERY_MS = 10_000;

/** The store was not reached or did not answer; a load that takes too long, or a call after disconnect(), is none of these. */
const OUT_OF_REACH: ReadonlySet<ErrorCode> = new Set(["CONNECTION_FAILED", "OPERATION_TIMEOUT"]);

/** Who passes on what is recorded. */
export interface Reporter {
  /** Something was counted for the first time since `reported()`. */
  counted(): void;
  timed(operation: string, seconds: number, weight: number): void;
  /** Time for the figures that are taken now and then. */
  marked(): void;
}

export class Recorder {
  hits = 0;
  misses = 0;
  /** Of the hits: those that the store was asked for. */
  storeHits = 0;
  sets = 0;
  deletes = 0;
  invalidations = 0;
  errors = 0;
  evictions = 0;
  connectionFailures = 0;
  readonly errorCounts = new ErrorCounts();
  /** True while a reporter waits for something to be counted; then call `wake`. */
  isAwaited = false;
  readonly #reporters = new Set<Reporter>();
  readonly #clock: Clock;
  readonly #birth: Mark;
  readonly #operations = new Map<string, OperationRecord>();
  /** The first is the newest that is older than the window, or the oldest there is. */
  #marks: Mark[] = [];
  #lastErrorAt = Number.NEGATIVE_INFINITY;
  #stop: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#birth = this.#reading();
  }

  /** Each operation that was ever called; get and set in any case. */
  get operations(): ReadonlyMap<string, OperationRecord> {
    return this.#operations;
  }

  /** Returns how to stop reporting to it. */
  addReporter(reporter: Reporter): () => void {
    this.#reporters.add(reporter);
    this.isAwaited = true;
    return () => {
      this.#reporters.delete(reporter);
      this.isAwaited &&= this.#reporters.size > 0;
    };
  }

  /** A reporter has passed on what was counted, and waits for more. */
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
    if (error instanceof BackendError && OUT_OF_REACH.has(error.code)) this.connectionFailures++;
  }

  hitRate(): number {
    const asked = this.hits + this.misses;
    return asked === 0 ? 0 : this.hits / asked;
  }

  /** Sets marks for the rates until `stop`, also when nobody asks for them; idempotent. */
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

  comprehensive(facts: StoreFacts): ComprehensiveMetrics {
    const byOperation: Record<string, OperationMetrics> = {};
    for (const [name, record] of this.#operations) {
      byOperation[name] = { count: record.count, errors: record.errors, ...latencies(record.latency) };
    }
    const now = this.#reading();
    const since = this.#beginning(now.at);
    if (this.#stop === undefined) this.#markNowAndThen(now);
    const seconds = Math.max(0.001, (now.at - since.at) / 1000);
    const recent = new Histogram();
    recent.merge(now.latency);
    recent.merge(since.latency, -1);
    return {
      // What did not happen in the window has no rate there; then that of the whole life stands.
      hitRate: hitRate(now, since) ?? this.hitRate(),
      totalOperations: now.operations,
      errorRate: this.#errorRate(now, since),
      ...latencies(recent.count > 0 ? recent : now.latency),
      operationsPerSecond: (now.operations - since.operations) / seconds,
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

  /** Whoever asks again and again leaves marks as well. */
  #markNowAndThen(reading: Mark): void {
    const last = this.#marks.at(-1);
    if (last === undefined || reading.at - last.at >= MARK_EVERY_MS) this.#keep(reading);
  }

  #keep(reading: Mark): void {
    this.#marks.push(reading);
    const oldest = reading.at - RATE_WINDOW_MS;
    while (this.#marks.length > 1 && (this.#marks[1] as Mark).at <= oldest) this.#marks.shift();
  }

  /** Where the rates begin: at the newest mark that is as old as the window, else where counting or collecting began. */
  #beginning(at: number): Mark {
    const first = this.#stop === undefined ? undefined : this.#marks[0];
    return this.#marks.findLast((mark) => mark.at <= at - RATE_WINDOW_MS) ?? first ?? this.#birth;
  }

  /** What failed before the window says nothing of now, however little was done since. */
  #errorRate(now: Mark, since: Mark): number {
    const operations = now.operations - since.operations;
    if (operations === 0 || now.at - this.#lastErrorAt >= RATE_WINDOW_MS) return 0;
    return Math.min(1, (now.errors - since.errors) / operations);
  }
}

function hitRate(now: Mark, since: Mark): number | undefined {
  const hits = now.hits - since.hits;
  const asked = hits + now.misses - since.misses;
  return asked > 0 ? hits / asked : undefined;
}

function latencies(histogram: Histogram): Omit<OperationMetrics, "count" | "errors"> {
  return {
    avgResponseTime: histogram.mean(),
    p50: histogram.quantile(0.5),
    p95: histogram.quantile(0.95),
    p99: histogram.quantile(0.99),
  };
}
