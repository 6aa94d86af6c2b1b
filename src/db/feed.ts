// Invalidation from the database's own stream of changes.
import { type Clock, systemClock } from "../core/clock.ts";
import { Catalogue } from "./feed/catalogue.ts";
import { Feed } from "./feed/feed.ts";
import {
  durableSlot,
  feedSettings,
  type NotifyFeedOptions,
  type PostgresFeedOptions,
  requireName,
} from "./feed/feed-options.ts";
import type { IsVisible } from "./feed/gate.ts";
import { LogicalLeader } from "./feed/logical-leader.ts";
import { NotifyLeader } from "./feed/notify-leader.ts";

export type {
  CacheForFeed,
  FeedMetrics,
  FeedOptions,
  NotifyFeedOptions,
  PostgresFeedOptions,
} from "./feed/feed-options.ts";
export type { FeedStatus } from "./feed/feed-status.ts";
export type { PostgresConnection } from "./feed/library.ts";
export { type RowId, rowsTag, rowTag } from "./tracking/table-tags.ts";
export type { Feed };

/** What tests put in place of the real thing. */
export interface FeedInternals {
  readonly clock?: Clock;
  readonly timeoutMs?: number;
  readonly isVisible?: IsVisible;
}

/**
 * Invalidates what any program commits to PostgreSQL, through logical replication. Begins at once, in the background. Throws
 * ConfigError for invalid options.
 */
export function postgresFeed(options: PostgresFeedOptions): Feed {
  return startPostgresFeed(options, {});
}

/** @internal */
export function startPostgresFeed(options: PostgresFeedOptions, internals: FeedInternals): Feed {
  const settings = feedSettings("postgresFeed", options, ["publication", "slot"]);
  const { publication = "xcache", slot } = options;
  requireName("postgresFeed", "publication", publication);
  const durable = durableSlot("postgresFeed", slot);
  const { clock = systemClock, isVisible } = internals;
  const leader = new LogicalLeader({ publication, durable, ...(isVisible && { isVisible }) });
  return new Feed(options, settings, {
    leader,
    identity: `${publication} ${durable ?? ""}`,
    readCatalogue: (sql) => Catalogue.read(sql, publication, settings.tables),
    clock,
    timeoutMs: internals.timeoutMs ?? linkTimeout(settings.silentForMs),
  });
}

/**
 * For servers without logical replication: triggers notify of changed tables, so rows are always dropped together, and
 * commits that notify are serialised by PostgreSQL. Throws ConfigError for invalid options.
 */
export function postgresNotifyFeed(options: NotifyFeedOptions): Feed {
  return startNotifyFeed(options, {});
}

/** @internal */
export function startNotifyFeed(
  options: NotifyFeedOptions,
  { clock = systemClock, timeoutMs }: Omit<FeedInternals, "isVisible">,
): Feed {
  const settings = feedSettings("postgresNotifyFeed", options, ["channel"]);
  const { channel = "xcache" } = options;
  requireName("postgresNotifyFeed", "channel", channel);
  return new Feed(options, settings, {
    leader: new NotifyLeader(channel),
    identity: `notify ${channel}`,
    readCatalogue: (sql) => Catalogue.ofTriggers(sql, channel, settings.tables),
    clock,
    timeoutMs: timeoutMs ?? linkTimeout(settings.silentForMs),
  });
}

/** Longer than the server takes between two signs of life. */
const linkTimeout = (silentForMs: number): number => Math.max(10_000, 5 * silentForMs);
