// The database feeds that invalidate a cache, known to it for its health check, metrics and alerts.
import type { Collector } from "./collector.ts";
import type { HealthCheckItem } from "./stats.ts";

export interface AttachedFeed {
  /** Whether cached reads of its tables may be served. */
  isAlive(): boolean;
  health(): HealthCheckItem;
}

/** What all objects of one cache share: itself and its namespaces. */
export interface FeedHost {
  readonly feeds: Set<AttachedFeed>;
  /** Where the cache itself reports. */
  readonly metrics: Collector | undefined;
}

const hosts = new WeakMap<object, FeedHost>();

export function offerFeedHost(cache: object, host: FeedHost): void {
  hosts.set(cache, host);
}

/** Returns a function that detaches it. Does nothing for an object that only implements the interface of a cache. */
export function attachFeed(cache: object, feed: AttachedFeed): () => void {
  const host = hosts.get(cache);
  host?.feeds.add(feed);
  return () => host?.feeds.delete(feed);
}

export const feedMetrics = (cache: object): Collector | undefined => hosts.get(cache)?.metrics;

/** Whether every feed of the cache is alive; true without any. */
export const areFeedsAlive = (cache: object): boolean => silentFeeds(hosts.get(cache)?.feeds ?? []) === 0;

export function silentFeeds(feeds: Iterable<AttachedFeed>): number {
  return [...feeds].filter((feed) => !feed.isAlive()).length;
}
