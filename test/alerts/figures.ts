// A cache whose figures a test sets.
import type { MetricsSource } from "../../src/alerts/snapshot.ts";
import type { ComprehensiveMetrics, OperationMetrics } from "../../src/core/stats.ts";

const IDLE: ComprehensiveMetrics = {
  hitRate: 0,
  avgResponseTime: 0,
  totalOperations: 0,
  errorRate: 0,
  p50: 0,
  p95: 0,
  p99: 0,
  operationsPerSecond: 0,
  byOperation: {},
  connectionFailures: 0,
  circuitBreakerOpen: false,
  poolUtilization: 0,
  memoryUsage: 0,
  evictionRate: 0,
};

export const callsOf = (count: number): OperationMetrics => ({
  count,
  errors: 0,
  avgResponseTime: 0,
  p50: 0,
  p95: 0,
  p99: 0,
});

export class Figures implements MetricsSource {
  record: ComprehensiveMetrics = IDLE;
  collections = 0;

  getComprehensiveMetrics(): ComprehensiveMetrics {
    return this.record;
  }

  startMetricsCollection(): void {
    this.collections++;
  }

  /** Changes some figures and keeps the rest. */
  set(figures: Partial<ComprehensiveMetrics>): void {
    this.record = { ...this.record, ...figures };
  }

  /** Adds reads, with the given hit rate. */
  read(count: number, hitRate: number): void {
    const { totalOperations, byOperation } = this.record;
    this.set({
      hitRate,
      totalOperations: totalOperations + count,
      byOperation: { ...byOperation, get: callsOf((byOperation.get?.count ?? 0) + count) },
    });
  }
}
