// Health checks: whether the store answers, and what is degraded and why.
import type { AttachedFeed } from "../core/attached-feeds.ts";
import type { PoolState } from "../core/backend.ts";
import type { BreakerState, CircuitBreaker } from "../core/breaker.ts";
import type { Clock } from "../core/clock.ts";
import { BackendError, OperationTimeoutError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import type { Store } from "../core/namespace.ts";
import { redactError } from "../core/redact.ts";
import { withDeadline } from "../core/resilience/with-deadline.ts";
import type { ComprehensiveMetrics, DetailedHealth, HealthCheckItem, HealthResult } from "../core/stats.ts";

/** Fractions above which a working store counts as degraded. */
const HIGH_ERROR_RATE = 0.01;
const HIGH_POOL_USE = 0.9;
const HIGH_MEMORY_USE = 0.95;

/** Never throws; takes at most `limitMs`. */
export async function checkHealth(store: Store, clock: Clock, limitMs: number): Promise<HealthResult> {
  const started = clock.now();
  try {
    await withDeadline(clock, limitMs, checkStore(store), () => {
      throw new OperationTimeoutError(`the store did not answer ping within ${limitMs / 1000} s`, {
        operation: "ping",
      });
    });
    return { isHealthy: true, latencySeconds: (clock.now() - started) / 1000 };
  } catch (error) {
    const latencySeconds = (clock.now() - started) / 1000;
    return { isHealthy: false, latencySeconds, error: redactError(toError(error)) };
  }
}

/** A store that answers but accepts no write is of no use as a cache. */
async function checkStore(store: Store): Promise<void> {
  await store.ping();
  const blocking = (await store.restrictions?.())?.find(({ blocksWrites }) => blocksWrites);
  if (blocking !== undefined) throw new BackendError("STORE_FAILED", blocking.detail);
}

const NO_POOL: PoolState = { size: 0, inUse: 0, idle: 0, waiting: 0 };

/** Zeros for a backend that has no pool, or fails to report it. */
export function poolState({ backend }: Store): PoolState {
  try {
    return backend.pool?.() ?? NO_POOL;
  } catch {
    return NO_POOL;
  }
}

function makesRoom({ backend }: Store): boolean {
  try {
    return backend.makesRoom?.() === true;
  } catch {
    return false;
  }
}

/**
 * The share of the connections that accept no more calls, 0 to 1. A connection that multiplexes calls is not exhausted
 * by having some in flight: `full` counts those that are. Default: the connections in use.
 */
export function poolUtilization({ size, inUse, full = inUse }: PoolState): number {
  return size === 0 ? 0 : Math.min(1, full / size);
}

/** Takes at most what the ping has left of operation_timeout. */
export async function detailHealth(
  store: Store,
  ping: HealthResult,
  measured: ComprehensiveMetrics,
  feeds: Iterable<AttachedFeed> = [],
): Promise<DetailedHealth> {
  const [memoryUsage, restrictions] = await Promise.all([
    memoryUse(store, ping, measured),
    restrictionCheck(store, ping),
  ]);
  const metrics = { ...measured, memoryUsage };
  const pool = poolState(store);
  const { size, inUse, idle, waiting } = pool;
  const utilization = poolUtilization(pool);
  const breaker = breakerFacts(store.breaker);
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const checks: HealthCheckItem[] = [
    {
      name: "store",
      ok: ping.isHealthy,
      detail: ping.isHealthy
        ? `answered in ${(ping.latencySeconds * 1000).toFixed(2)} ms`
        : reasonOf(ping.error),
    },
    { name: "circuit_breaker", ok: breaker.state === "closed", detail: breaker.state },
    {
      name: "error_rate",
      ok: metrics.errorRate <= HIGH_ERROR_RATE,
      detail: `${percent(metrics.errorRate)} of the latest operations failed`,
    },
    {
      name: "connection_pool",
      // A busy pool is only a problem once calls wait for a connection.
      ok: utilization <= HIGH_POOL_USE || waiting === 0,
      detail: size === 0 ? "no connections needed" : `${inUse} of ${size} in use, ${waiting} calls waiting`,
    },
    {
      name: "memory",
      ok: metrics.memoryUsage <= HIGH_MEMORY_USE || makesRoom(store),
      detail: `${percent(metrics.memoryUsage)} of the limit in use`,
    },
    ...restrictions,
    ...Array.from(feeds, (feed) => feed.health()),
  ];
  const degraded = checks.some((check) => !check.ok);
  return {
    status: !ping.isHealthy ? "unhealthy" : degraded ? "degraded" : "healthy",
    kvConnected: ping.isHealthy,
    connectionPool: { size, inUse, idle, waiting, utilization },
    circuitBreaker: breaker,
    performanceMetrics: metrics,
    checks,
  };
}

/** Only of stores that can restrict their clients. */
async function restrictionCheck(store: Store, ping: HealthResult): Promise<readonly HealthCheckItem[]> {
  if (!ping.isHealthy || store.backend.restrictions === undefined) return [];
  try {
    const found = (await store.restrictions?.(ping.latencySeconds * 1000)) ?? [];
    const detail = found.length === 0 ? "none" : found.map((each) => each.detail).join("; ");
    return [{ name: "restrictions", ok: found.length === 0, detail }];
  } catch (error) {
    return [{ name: "restrictions", ok: false, detail: reasonOf(redactError(toError(error))) }];
  }
}

/** A store that did not answer the ping is not asked again. */
async function memoryUse(
  store: Store,
  ping: HealthResult,
  { memoryUsage }: ComprehensiveMetrics,
): Promise<number> {
  if (!ping.isHealthy || store.firstMemoryUsage === undefined) return memoryUsage;
  return store.firstMemoryUsage(ping.latencySeconds * 1000);
}

/** Some errors have no message, such as the AggregateError of a connection tried at several addresses. */
function reasonOf(error: Error | undefined): string {
  const { message = "", code, name } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  return message || code || name || "did not answer";
}

function breakerFacts(breaker: CircuitBreaker | undefined): DetailedHealth["circuitBreaker"] {
  const iso = (at: number | undefined): string | null =>
    at === undefined ? null : new Date(at).toISOString();
  const state: BreakerState = breaker?.state ?? "closed";
  return {
    state,
    failures: breaker?.failures ?? 0,
    openedAt: iso(breaker?.openedAt),
    nextProbeAt: iso(breaker?.nextProbeAt),
  };
}
