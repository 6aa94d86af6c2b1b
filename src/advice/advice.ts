// Advice based on a cache's metrics: each finding with its evidence and what to do.
import type { DetailedHealth, FleetActivity, FleetStats, FunctionStats } from "../core/stats.ts";
import type { EntrySample } from "./entry-sample.ts";

export type AdviceCode =
  | "FUNCTION_NEVER_HITS"
  | "TTL_TOO_SHORT"
  | "LOW_HIT_RATE"
  | "ENTRIES_WITHOUT_TTL"
  | "TAG_CHURN"
  | "NEAR_TIER_MISSES"
  | "LARGE_VALUES"
  | "BREAKER_OPENED"
  | "STAMPEDES_COALESCED"
  | "MEMORY_NEARLY_FULL"
  | "ERRORS";

/** A finding. */
export interface Advice {
  readonly code: AdviceCode;
  readonly severity: "problem" | "warning" | "info";
  /** In one line. */
  readonly title: string;
  /** The figures it follows from. */
  readonly evidence: string;
  readonly suggestion: string;
  /** What it is about, where that is one thing. */
  readonly about?: { readonly kind: "function" | "tag" | "prefix" | "process"; readonly name: string };
}

export interface AdviceFacts {
  readonly stats: FleetStats;
  readonly activity: FleetActivity;
  readonly health: DetailedHealth;
  /** Undefined where the store cannot list entries. */
  readonly sample: EntrySample | undefined;
  readonly hasNearTier: boolean;
  readonly makesRoom: boolean;
}

/** Fewer calls prove nothing. */
const ENOUGH_CALLS = 50;
const LOW_HIT_RATE = 0.5;
const LARGE_BYTES = 1024 * 1024;
const MANY_INVALIDATIONS = 60;
const HIGH_MEMORY = 0.8;
const MOST_FINDINGS = 20;

const percent = (share: number): string => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
const count = (value: number): string => Math.round(value).toLocaleString("en-US");
const seconds = (value: number): string =>
  value < 1 ? `${Math.round(value * 1_000)} ms` : `${Number(value.toPrecision(2))} s`;
const megabytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;

/** Worst first. */
export function adviceOf(facts: AdviceFacts): readonly Advice[] {
  const order = { problem: 0, warning: 1, info: 2 };
  return [
    ...functionAdvice(facts),
    ...storeAdvice(facts),
    ...entryAdvice(facts),
    ...tagAdvice(facts),
    ...nearAdvice(facts),
  ]
    .toSorted((one, other) => order[one.severity] - order[other.severity])
    .slice(0, MOST_FINDINGS);
}

function functionAdvice({ activity }: AdviceFacts): readonly Advice[] {
  return activity.functions.filter(({ calls }) => calls >= ENOUGH_CALLS).flatMap(adviceFor);
}

function adviceFor(each: FunctionStats): readonly Advice[] {
  const { name, calls, hits, hitRate, ttlSeconds, loads, coalesced } = each;
  const about = { kind: "function", name } as const;
  const found: Advice[] = [];
  if (hits === 0) {
    found.push({
      code: "FUNCTION_NEVER_HITS",
      severity: "problem",
      title: `${name} never hits`,
      evidence: `${count(calls)} calls, ${count(loads)} loads, no hit.`,
      suggestion:
        "Its arguments may differ in every call: pass only what the result depends on, or use the option `key`.",
      about,
    });
  } else if (hitRate < LOW_HIT_RATE && Number.isFinite(ttlSeconds) && ttlSeconds > 0) {
    // Calls of one key at random, d seconds apart on average, hit with ttl / (ttl + d).
    const apart = (ttlSeconds * (1 - hitRate)) / hitRate;
    found.push({
      code: "TTL_TOO_SHORT",
      severity: "problem",
      title: `${name} hits ${percent(hitRate)}`,
      evidence: `Its ttl of ${seconds(ttlSeconds)} is shorter than the about ${seconds(apart)} between calls for one key.`,
      suggestion: `A ttl of ${seconds(apart * 4)} would hit about 80 %, if its data may be that old.`,
      about,
    });
  } else if (hitRate < LOW_HIT_RATE) {
    found.push({
      code: "LOW_HIT_RATE",
      severity: "warning",
      title: `${name} hits ${percent(hitRate)}`,
      evidence: `${count(calls)} calls, ${count(loads)} loads.`,
      suggestion: "Look for invalidations more frequent than calls, or arguments that seldom repeat.",
      about,
    });
  }
  if (loads > 0 && coalesced >= ENOUGH_CALLS && coalesced > loads) {
    found.push({
      code: "STAMPEDES_COALESCED",
      severity: "info",
      title: `${name}: ${count(coalesced)} calls waited for a load`,
      evidence: `${count(loads)} loads answered ${count(coalesced + loads)} calls; a load takes ${seconds(each.p95LoadTime)} (p95).`,
      suggestion: "With staleWhileRevalidate callers get the old value at once while one of them loads.",
      about,
    });
  }
  return found;
}

function storeAdvice({ stats, activity, health, makesRoom }: AdviceFacts): readonly Advice[] {
  const found: Advice[] = [];
  const { memoryUsage } = health.performanceMetrics;
  for (const { host, pid, states, circuitBreaker } of activity.processes) {
    const openings = states.filter(({ what, state }) => what === "circuit_breaker" && state === "open");
    const last = openings.at(-1);
    if (last === undefined) continue;
    found.push({
      code: "BREAKER_OPENED",
      severity: circuitBreaker === "closed" ? "warning" : "problem",
      title: `${host} ${pid}: the breaker opened ${openings.length === 1 ? "once" : `${openings.length} times`}`,
      evidence: `Last at ${last.at}; it is ${circuitBreaker} now.`,
      suggestion: "While it is open, functions run without the store. Look at the store's log of that time.",
      about: { kind: "process", name: `${host} ${pid}` },
    });
  }
  if (memoryUsage > HIGH_MEMORY) {
    found.push({
      code: "MEMORY_NEARLY_FULL",
      severity: makesRoom ? "info" : "problem",
      title: `The store is ${percent(memoryUsage)} full`,
      evidence: `${count(stats.totalEvictions)} evictions counted in this period.`,
      suggestion: makesRoom
        ? "It evicts what was used least. If the hit rate suffers, give it more memory."
        : "Once full it rejects writes: give it more memory, or set maxmemory-policy to allkeys-lru.",
    });
  }
  const operations = Math.max(1, stats.totalOperations);
  if (stats.totalErrors / operations > 0.01) {
    found.push({
      code: "ERRORS",
      severity: "problem",
      title: `${percent(stats.totalErrors / operations)} of the operations failed`,
      evidence: `${count(stats.totalErrors)} errors in ${count(stats.totalOperations)} operations.`,
      suggestion: "`xcache doctor` checks the connection and the server.",
    });
  }
  return found;
}

function entryAdvice({ sample }: AdviceFacts): readonly Advice[] {
  if (sample === undefined || sample.sampled === 0) return [];
  const found: Advice[] = [];
  const share = sample.withoutTtl / sample.sampled;
  const [prefix] = sample.withoutTtlPrefixes;
  if (share >= 0.05 && prefix !== undefined) {
    found.push({
      code: "ENTRIES_WITHOUT_TTL",
      severity: "warning",
      title: `About ${count(share * sample.total)} entries never expire`,
      evidence: `${percent(share)} of ${count(sample.sampled)} entries looked at have no ttl, most under "${prefix[0]}".`,
      suggestion: "Give them a ttl, or make sure that something deletes them.",
      about: { kind: "prefix", name: prefix[0] },
    });
  }
  const [largest] = sample.largest;
  if (largest !== undefined && largest.bytes > LARGE_BYTES) {
    found.push({
      code: "LARGE_VALUES",
      severity: "warning",
      title: `An entry takes ${megabytes(largest.bytes)}`,
      evidence: `${sample.largest.filter(({ bytes }) => bytes > LARGE_BYTES).length} of the entries looked at are above 1 MiB.`,
      suggestion: "Every read transfers it whole: store parts of it, or turn on compression.",
    });
  }
  return found;
}

function tagAdvice({ activity, sample }: AdviceFacts): readonly Advice[] {
  const byTag = new Map<string, number>();
  for (const { kind, tag, count: times } of activity.invalidations) {
    if (kind === "tag" && tag !== undefined) byTag.set(tag, (byTag.get(tag) ?? 0) + times);
  }
  return [...byTag]
    .filter(([, times]) => times >= MANY_INVALIDATIONS)
    .map(([tag, times]) => {
      const entries = sample?.tags.find((each) => each.tag === tag)?.entries ?? 0;
      return {
        code: "TAG_CHURN",
        severity: "warning",
        title: `${tag}: ${count(times)} invalidations`,
        evidence: `Each drops ${entries === 0 ? "what has been stored since the one before" : `about ${count(entries)} entries`}.`,
        suggestion: "Use a finer tag, such as one per row, if most of them did not change.",
        about: { kind: "tag", name: tag },
      } as const;
    });
}

function nearAdvice({ stats, hasNearTier }: AdviceFacts): readonly Advice[] {
  const { totalHits, totalStoreHits } = stats;
  if (!hasNearTier || totalHits < 1_000 || totalStoreHits < totalHits / 2) return [];
  return [
    {
      code: "NEAR_TIER_MISSES",
      severity: "info",
      title: `The near tier answers ${percent(1 - totalStoreHits / totalHits)} of the hits`,
      evidence: `${count(totalStoreHits)} of ${count(totalHits)} hits went to the store.`,
      suggestion: "A larger near_cache would answer more of them inside the process.",
    },
  ];
}
