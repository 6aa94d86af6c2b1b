// Gathers the facts that advice is based on, without being counted itself.
import type { EntryPage } from "../cache/entry-pages.ts";
import type { CacheInside } from "../cache/inside.ts";
import type { DetailedHealth, FleetActivity, FleetStats, HealthResult } from "../core/stats.ts";
import { detailHealth } from "../health/health.ts";
import { type Advice, adviceOf } from "./advice.ts";
import { type EntrySample, sampleEntries } from "./entry-sample.ts";

/** What a cache object can be asked for without being counted. */
export interface AdvisedCache {
  scan(): AsyncIterable<EntryPage>;
  healthCheck(): Promise<HealthResult>;
}

/** Entries looked at; of a tag that a tenth of all carry, the count is then off by 13 % at most. */
const SAMPLE = 2_000;

export async function uncountedStats(
  { namespace, instruments }: CacheInside,
  since: number,
): Promise<FleetStats> {
  const usage = await namespace().usage(false);
  return instruments.history.fleet(instruments.telemetry.recorder.stats(usage), since);
}

export async function uncountedHealth(
  cache: AdvisedCache,
  { root, instruments }: CacheInside,
): Promise<DetailedHealth> {
  return detailHealth(root.store, await cache.healthCheck(), instruments.comprehensive(), root.feeds);
}

/** Undefined where the store cannot list entries. */
export async function takeSample(
  cache: AdvisedCache,
  { root }: CacheInside,
  total: number,
  activity: FleetActivity,
  limit = SAMPLE,
): Promise<EntrySample | undefined> {
  const { backend } = root.store;
  if (!backend.capabilities.scan) return undefined;
  return sampleEntries(cache.scan(), {
    limit,
    total,
    marks: activity.invalidations,
    // Redis lists keys by their hashes; others by name or age, where the first ones say little about the rest.
    isOrdered: backend.name !== "kv",
  });
}

export async function advise(
  cache: AdvisedCache,
  inside: CacheInside,
  since: number,
): Promise<readonly Advice[]> {
  const stats = await uncountedStats(inside, since);
  const activity = await inside.instruments.history.activity(since);
  const health = await uncountedHealth(cache, inside);
  const sample = await takeSample(cache, inside, stats.totalKeys, activity);
  return adviceFrom(inside, { stats, activity, health, sample });
}

export function adviceFrom(
  { root }: CacheInside,
  facts: {
    readonly stats: FleetStats;
    readonly activity: FleetActivity;
    readonly health: DetailedHealth;
    readonly sample: EntrySample | undefined;
  },
): readonly Advice[] {
  return adviceOf({
    ...facts,
    hasNearTier: root.config.nearCache !== false,
    makesRoom: root.store.backend.makesRoom?.() === true,
  });
}
