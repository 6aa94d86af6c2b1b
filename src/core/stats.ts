// The records returned by statistics, metrics and health checks. Rates are fractions from 0 to 1, times are seconds.
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
  /** Bytes used by the keys of this prefix. */
  readonly totalMemoryBytes: number;
  readonly memoryUsageMb: number;
  readonly uptimeSeconds: number;
  /** Keys and bytes were sampled or include entries not yet reclaimed; `{ exact: true }` counts. */
  readonly approximate: boolean;
  /** Whether keys and bytes count this prefix or, where the store cannot count by prefix, everything on its servers. */
  readonly scope: "prefix" | "server";
}

/** The counts of all processes in one minute. */
export interface FleetMinute {
  /** When it began, ISO 8601. */
  readonly at: string;
  /** How many processes reported anything in it. */
  readonly processes: number;
  readonly hitRate: number;
  readonly totalHits: number;
  readonly totalMisses: number;
  readonly totalSets: number;
  readonly totalDeletes: number;
  readonly totalInvalidations: number;
  readonly totalErrors: number;
  readonly totalEvictions: number;
  /** The number of calls that the response times are based on. */
  readonly totalOperations: number;
  /** Seconds in which this was counted, summed over the processes. */
  readonly activeSeconds: number;
  readonly avgResponseTime: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** As CacheStats, over all processes that use the same prefix of a store, for a recent period. */
export interface FleetStats extends CacheStats, Omit<FleetMinute, "at" | "processes"> {
  /** Start of the period, ISO 8601. */
  readonly since: string;
  /** The highest number of processes that reported anything in one minute. */
  readonly processes: number;
  /** The minutes with any counts, oldest first. */
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
  /** The used share of the store's limit; 0 where there is no limit. */
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
  /** Each individual check, so that a reader sees the reason for the status. */
  readonly checks: readonly HealthCheckItem[];
}
