// The records returned by statistics, metrics and health checks. Rates are fractions from 0 to 1, times are seconds.
import type { ReportedAlert } from "./alert-state.ts";
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
  /** Hits answered by the store; the others were answered inside a process. */
  readonly totalStoreHits: number;
  /** Calls answered by a stale value. */
  readonly totalStaleServed: number;
  /** Loads that ran. */
  readonly totalLoads: number;
  /** Calls answered by a load that another call had started. */
  readonly totalCoalesced: number;
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

/** A change of the connection or the circuit breaker of one process. */
export interface StateChange {
  /** ISO 8601, by the store's clock. */
  readonly at: string;
  readonly what: "connection" | "circuit_breaker";
  readonly state: string;
}

/** A process that uses this prefix with metrics on. Its counts are those of about the last minute. */
export interface ProcessStats extends Omit<FleetMinute, "at" | "processes"> {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Of xcache. */
  readonly version: string;
  readonly startedAt: string;
  /** When it last reported: a process that has not for a minute is not listed. */
  readonly seenAt: string;
  /** Whether it is the process that asks. */
  readonly isSelf: boolean;
  /** The period that its counts cover. */
  readonly seconds: number;
  readonly operationsPerSecond: number;
  readonly heapBytes: number;
  readonly circuitBreaker: string;
  readonly alerts: readonly ReportedAlert[];
  /** The last 200, oldest first. */
  readonly states: readonly StateChange[];
}

export interface FunctionMinute {
  readonly at: string;
  readonly calls: number;
  readonly hits: number;
  readonly loads: number;
}

/** A function wrapped by `cached`, over all processes. Beyond 200 names the rest are counted as `other`. */
export interface FunctionStats {
  readonly name: string;
  readonly calls: number;
  readonly hits: number;
  readonly hitRate: number;
  /** How often the function itself ran. */
  readonly loads: number;
  /** Calls answered by a load that another call had started. */
  readonly coalesced: number;
  readonly staleServed: number;
  /** Loads that failed. */
  readonly errors: number;
  /** Seconds. */
  readonly avgLoadTime: number;
  readonly p95LoadTime: number;
  /** Of the latest load; Infinity: never expires. 0: none yet. */
  readonly ttlSeconds: number;
  /** The minutes with calls, oldest first. */
  readonly history: readonly FunctionMinute[];
}

/** Invalidations of one tag, by pattern, or of everything, in one minute. Beyond 100 tags the rest count as `other`. */
export interface InvalidationMark {
  readonly at: string;
  readonly kind: "tag" | "pattern" | "clear" | "other";
  readonly tag?: string;
  readonly count: number;
}

/** What the processes of a prefix report about themselves. */
export interface FleetActivity {
  readonly processes: readonly ProcessStats[];
  /** Most calls first. */
  readonly functions: readonly FunctionStats[];
  readonly invalidations: readonly InvalidationMark[];
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
  /** Database feeds of this cache that are silent, so that reads bypass the cache; absent without a feed. */
  readonly silentFeeds?: number;
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

/** What a call for a key would do now, and why. Times are seconds. */
export interface KeyExplanation {
  readonly key: string;
  /** `error`: the store fails, so that `get` throws. */
  readonly get: "hit" | "miss" | "error";
  /** `stale`: returns the expired value at once. `join`: waits for a load that is already running. */
  readonly getOrSet: "hit" | "stale" | "join" | "load";
  /** Why, in a sentence. */
  readonly reason: string;
  /** `absent`: nothing is left of it, if there ever was anything. `unknown`: the store could not be asked. */
  readonly state: "fresh" | "expired" | "invalidated" | "absent" | "unknown";
  /** Where a hit comes from: the memory store or the near tier of this process, or the shared store. */
  readonly tier?: "memory" | "near" | "store";
  /** Of a fresh entry. Infinity: it never expires. */
  readonly ttl?: number;
  /** How long ago it expired. */
  readonly expiredFor?: number;
  /** How much longer getOrSet may serve it stale once it has expired, where the call allows it. */
  readonly staleFor?: number;
  readonly tags?: readonly string[];
  readonly invalidatedBy?: {
    /** Those of its tags that were invalidated. */
    readonly tags: readonly string[];
    /** The whole namespace or one above it was cleared. */
    readonly cleared: boolean;
    /** ISO 8601, to the minute if another process did it; undefined where it is not known. */
    readonly at?: string;
  };
  /** Who loads it now. `callers`: how many wait in this process. */
  readonly loading?: { readonly by: "this process" | "another process"; readonly callers?: number };
  readonly circuitBreaker: BreakerState;
}
