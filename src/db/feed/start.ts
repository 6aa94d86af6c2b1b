// Puts a feed together from its options; tests put other parts in.
import { type Clock, systemClock } from "../../core/clock.ts";
import { type BinlogOptions, BinlogSource } from "./binlog-leader.ts";
import { RunningFeed } from "./feed.ts";
import {
  durableSlot,
  type FeedOptions,
  type FeedSettings,
  feedSettings,
  type MysqlFeedOptions,
  type NotifyFeedOptions,
  type PostgresFeedOptions,
  requireName,
} from "./feed-options.ts";
import type { Feed } from "./feed-status.ts";
import { clientsOf } from "./library.ts";
import type { LinkOptions } from "./link.ts";
import { type IsVisible, LogicalSource } from "./logical-leader.ts";
import { NotifySource } from "./notify-leader.ts";

/** What tests put in place of the real thing. */
export interface FeedInternals {
  readonly clock?: Clock;
  readonly timeoutMs?: number;
  readonly isVisible?: IsVisible;
}

export interface MysqlInternals extends Omit<FeedInternals, "isVisible"> {
  readonly isVisible?: NonNullable<BinlogOptions["isVisible"]>;
}

export function startPostgresFeed(options: PostgresFeedOptions, internals: FeedInternals): Feed {
  const settings = feedSettings("postgresFeed", options, ["publication", "slot"]);
  const { publication = "xcache", slot } = options;
  requireName("postgresFeed", "publication", publication);
  const durable = durableSlot("postgresFeed", slot);
  const { clock = systemClock, isVisible } = internals;
  const links = linksOf(options, settings, internals);
  const { tables } = settings;
  return new RunningFeed(options, settings, {
    source: new LogicalSource({ links, tables, publication, durable, ...(isVisible && { isVisible }) }),
    identity: `${publication} ${durable ?? ""}`,
    clock,
  });
}

export function startNotifyFeed(options: NotifyFeedOptions, internals: FeedInternals): Feed {
  const settings = feedSettings("postgresNotifyFeed", options, ["channel"]);
  const { channel = "xcache" } = options;
  requireName("postgresNotifyFeed", "channel", channel);
  return new RunningFeed(options, settings, {
    source: new NotifySource({
      links: linksOf(options, settings, internals),
      tables: settings.tables,
      channel,
    }),
    identity: `notify ${channel}`,
    clock: internals.clock ?? systemClock,
  });
}

export function startMysqlFeed(options: MysqlFeedOptions, internals: MysqlInternals): Feed {
  const settings = feedSettings("mysqlFeed", options, [], "connection of mysql2");
  const { clock = systemClock, isVisible, timeoutMs = linkTimeout(settings.silentForMs) } = internals;
  const links = { connection: options.connection, clock, timeoutMs };
  const { tables } = settings;
  return new RunningFeed(options, settings, {
    source: new BinlogSource({ links, tables, ...(isVisible && { isVisible }) }),
    identity: "binlog",
    clock,
  });
}

function linksOf(
  { connection }: FeedOptions,
  { silentForMs }: FeedSettings,
  { clock = systemClock, timeoutMs = linkTimeout(silentForMs) }: FeedInternals,
): LinkOptions {
  return { open: clientsOf(connection), clock, timeoutMs };
}

/** Longer than the server takes between two signs of life. */
const linkTimeout = (silentForMs: number): number => Math.max(10_000, 5 * silentForMs);
