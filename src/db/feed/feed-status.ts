// What a feed reports about itself: status, health check and metrics.
import { feedMetrics } from "../../core/attached-feeds.ts";
import type { ChangeFeed } from "../../core/db-session.ts";
import type { HealthCheckItem } from "../../core/stats.ts";
import type { FeedMetrics, FeedOptions } from "./feed-options.ts";

export interface FeedStatus {
  /** `leader`: this process reads the stream. `follower`: another one does. `down`: neither is known. */
  readonly role: "leader" | "follower" | "down";
  /** Whether cached reads may be served. */
  readonly alive: boolean;
  /** Seconds since the moment up to which every visible commit is known to be invalidated; undefined: never yet. */
  readonly silence: number | undefined;
  /** Seconds from the latest commit to its invalidation. Only the leader knows. */
  readonly lag: number | undefined;
  /** The position in the write-ahead log that has been received, such as `0/1A2B3C4`. Only the leader knows. */
  readonly position: string | undefined;
  /** What is being waited for. */
  readonly waiting: string | undefined;
  /** Why it is down, without credentials. */
  readonly error: string | undefined;
  /** How often everything was dropped, since changes may have been missed. */
  readonly gaps: number;
  /** How often this process became the leader. */
  readonly elections: number;
  /** Transactions whose changes were invalidated here. */
  readonly invalidations: number;
}

/** A running feed. */
export interface Feed extends ChangeFeed, AsyncDisposable {
  /**
   * Resolves when the feed is alive. Rejects with ConfigError or MissingPeerError if the database is not set up for it, with
   * ConnectionError when it is closed; waits for a server that cannot be reached.
   */
  ready(): Promise<void>;
  status(): FeedStatus;
  /** One of the checks of `cache.detailedHealthCheck()`, as long as the feed is open. */
  health(): HealthCheckItem;
  /** Idempotent. Ends the connections; a temporary slot goes with them, a durable one stays. */
  close(): Promise<void>;
}

const COUNTERS = [
  "cache.feed.gaps.total",
  "cache.feed.leader_changes.total",
  "cache.feed.invalidations.total",
];

/** The counts of a feed, also sent to the metrics. */
export class FeedCounts {
  readonly #metrics: FeedMetrics | undefined;
  gaps = 0;
  elections = 0;
  invalidations = 0;
  lag: number | undefined;

  /** Reports to the given metrics, or to those of the cache. */
  constructor({ cache, metrics = feedMetrics(cache) }: Pick<FeedOptions, "cache" | "metrics">) {
    this.#metrics = metrics;
    // A rate is only known from the second value on.
    for (const name of COUNTERS) this.#report((to) => to.increment(name, 0));
  }

  gap(): void {
    this.gaps++;
    this.#report((metrics) => metrics.increment("cache.feed.gaps.total", 1));
  }

  elected(): void {
    this.elections++;
    this.#report((metrics) => metrics.increment("cache.feed.leader_changes.total", 1));
  }

  invalidated(transactions: number, lag: number): void {
    this.invalidations += transactions;
    this.lag = lag;
    this.#report((metrics) => metrics.increment("cache.feed.invalidations.total", transactions));
    this.#report((metrics) => metrics.timing("cache.feed.lag", lag));
  }

  /** Of all feeds of the cache. */
  alive(isAlive: boolean): void {
    this.#report((metrics) => metrics.gauge("cache.feed.alive", isAlive ? 1 : 0));
  }

  /** Metrics that fail are no reason to stop. */
  #report(send: (metrics: FeedMetrics) => void): void {
    try {
      if (this.#metrics !== undefined) send(this.#metrics);
    } catch {
      // The measurement is lost.
    }
  }
}

export function healthOf(status: FeedStatus): HealthCheckItem {
  const { alive, role, silence, error, waiting } = status;
  const since = silence === undefined ? "has never been alive" : `silent for ${silence.toFixed(1)} s`;
  const reason = error ?? waiting;
  const detail = alive ? role : reason === undefined ? since : `${since}: ${reason}`;
  return { name: "feed", ok: alive, detail };
}
