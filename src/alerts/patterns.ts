// Ready-made alerts that suit most systems; only a destination is missing.
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { requireNumber } from "./checks.ts";
import type { AlertRule } from "./definition.ts";

export interface PatternOptions {
  /** Evictions per second above which the store counts as too small. Default: 10. */
  readonly evictionRate?: number;
  /** Also one for a database feed that is silent. Default: false. */
  readonly feed?: boolean;
}

/** `for` ignores short dips of a rate and a cache that is still cold. */
const patterns = (evictionRate: number) =>
  [
    { name: "hit_rate_low", metric: "hit_rate", comparison: "less_than", threshold: 0.7, for: 300 },
    {
      name: "response_time_high",
      metric: "avg_response_time",
      comparison: "greater_than",
      threshold: 0.1,
      for: 60,
    },
    { name: "error_rate_high", metric: "error_rate", comparison: "greater_than", threshold: 0.01, for: 60 },
    { name: "connection_failures", metric: "connection_failures", comparison: "greater_than", threshold: 0 },
    { name: "circuit_breaker_open", metric: "circuit_breaker_open", comparison: "equal", threshold: 1 },
    {
      name: "pool_exhausted",
      metric: "pool_utilization",
      comparison: "greater_or_equal",
      threshold: 1,
      for: 60,
    },
    { name: "memory_high", metric: "memory_usage", comparison: "greater_than", threshold: 0.8, for: 60 },
    {
      name: "pool_utilization_high",
      metric: "pool_utilization",
      comparison: "greater_than",
      threshold: 0.9,
      for: 60,
    },
    {
      name: "eviction_rate_high",
      metric: "eviction_rate",
      comparison: "greater_than",
      threshold: evictionRate,
      for: 60,
    },
  ] as const satisfies readonly AlertRule[];

/** Reads bypass the cache meanwhile, so the database carries the whole load. */
const FEED_SILENT = {
  name: "feed_silent",
  metric: "silent_feeds",
  comparison: "greater_than",
  threshold: 0,
  for: 60,
} as const satisfies AlertRule;

/** An alert without a destination, under one of the nine names, or that of the feed. */
export type AlertPattern = AlertRule & {
  readonly name: ReturnType<typeof patterns>[number]["name"] | "feed_silent";
};

const DEFAULT_EVICTION_RATE = 10;

/** Throws ConfigError. */
export function alertPatterns(options: PatternOptions): readonly AlertPattern[] {
  requireOptions(options, ["evictionRate", "feed"]);
  const { evictionRate = DEFAULT_EVICTION_RATE, feed } = options;
  const common = patterns(requireNumber("evictionRate", evictionRate));
  return requireFlag(feed, "feed", false) ? [...common, FEED_SILENT] : common;
}
