// The records that statistics, metrics and health hand out. Rates are fractions 0 to 1, times are seconds.
import type { BreakerState } from "./breaker.ts";

export interface CacheStats {
  readonly hitRate: number;
  readonly totalHits: number;
  readonly totalMisses: number;
  readonly totalSets: number;
  readonly totalDeletes: number;
  readonly totalInvalidations: number;
  readonly totalErrors: number;
  readonly totalEvictions: number;
  /** Live keys of this prefix. */
  readonly totalKeys: number;
  /** Bytes that the keys of this prefix take. */
  readonly totalMemoryBytes: number;
  readonly memoryUsageMb: number;
  readonly uptimeSeconds: number;
  /** Keys and bytes were sampled or include entries not yet reclaimed; `{ exact: true }` counts. */
  readonly approximate: boolean;
  /** What keys and bytes are of: this prefix or, where the store cannot tell prefixes apart, everything on its servers. */
  readonly scope: "prefix" | "server";
}

/** What all processes counted in one minute. */
export interface FleetMinute {
  /** When it began, ISO 8601. */
  readonly at: string;
  /** How many processes counted anything in it. */
  readonly processes: number;
  readonly hitRate: number;
  readonly totalHits: number;
  readonly totalMisses: number;
  readonly totalSets: number;
  readonly totalDeletes: number;
  readonly totalInvalidations: number;
  readonly totalErrors: number;
  readonly totalEvictions: number;
  /** How many calls the other figures are about. */
  readonly totalOperations: number;
  readonly avgResponseTime: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** As CacheStats, of all processes that use the same prefix of a store, over the last while. */
export interface FleetStats extends CacheStats, Omit<FleetMinute, "at" | "processes"> {
  /** When the time begins that the figures are about, ISO 8601. */
  readonly since: string;
  /** The most processes that counted anything in one minute. */
  readonly processes: number;
  /** Of the minutes in which something was counted, the oldest first. */
  readonly history: readonly FleetMinute[];
}

export interface OperationMetrics {
  readonly count: number;
  readonly errors: number;
  readonly avgResponseTime: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface ComprehensiveMetrics {
  readonly hitRate: number;
  readonly avgResponseTime: number;
  readonly totalOperations: number;
  /** Share of the operations that failed; 0 when nothing failed in the last minute. */
  readonly errorRate: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly operationsPerSecond: number;
  readonly byOperation: Readonly<Record<string, OperationMetrics>>;
  readonly connectionFailures: number;
  readonly circuitBreakerOpen: boolean;
  readonly poolUtilization: number;
  /** Share of the store's bound that is in use; 0 where there is no bound. */
  readonly memoryUsage: number;
  /** Evictions per second. */
  readonly evictionRate: number;
}

export interface HealthResult {
  readonly isHealthy: boolean;
  readonly latencySeconds: number;
  readonly error?: Error;
}

export interface HealthCheckItem {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

export interface DetailedHealth {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly kvConnected: boolean;
  readonly connectionPool: {
    readonly size: number;
    readonly inUse: number;
    readonly idle: number;
    readonly waiting: number;
    readonly utilization: number;
  };
  readonly circuitBreaker: {
    readonly state: BreakerState;
    readonly failures: number;
    /** ISO 8601, or null while closed. */
    readonly openedAt: string | null;
    readonly nextProbeAt: string | null;
  };
  readonly performanceMetrics: ComprehensiveMetrics;
  /** Each thing that was looked at, so that a reader sees why. */
  readonly checks: readonly HealthCheckItem[];
}
