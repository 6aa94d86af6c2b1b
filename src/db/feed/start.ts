// Puts a feed together from its options; tests put other parts in.
import { type Clock, systemClock } from "../../core/clock.ts";
import { Catalogue } from "./catalogue.ts";
import { RunningFeed } from "./feed.ts";
import {
  durableSlot,
  feedSettings,
  type NotifyFeedOptions,
  type PostgresFeedOptions,
  requireName,
} from "./feed-options.ts";
import type { Feed } from "./feed-status.ts";
import type { IsVisible } from "./gate.ts";
import { LogicalLeader } from "./logical-leader.ts";
import { NotifyLeader } from "./notify-leader.ts";

/** What tests put in place of the real thing. */
export interface FeedInternals {
  readonly clock?: Clock;
  readonly timeoutMs?: number;
  readonly isVisible?: IsVisible;
}

export function startPostgresFeed(options: PostgresFeedOptions, internals: FeedInternals): Feed {
  const settings = feedSettings("postgresFeed", options, ["publication", "slot"]);
  const { publication = "xcache", slot } = options;
  requireName("postgresFeed", "publication", publication);
  const durable = durableSlot("postgresFeed", slot);
  const { clock = systemClock, isVisible } = internals;
  const leader = new LogicalLeader({ publication, durable, ...(isVisible && { isVisible }) });
  return new RunningFeed(options, settings, {
    leader,
    identity: `${publication} ${durable ?? ""}`,
    readCatalogue: (sql) => Catalogue.read(sql, publication, settings.tables),
    clock,
    timeoutMs: internals.timeoutMs ?? linkTimeout(settings.silentForMs),
  });
}

export function startNotifyFeed(options: NotifyFeedOptions, internals: FeedInternals): Feed {
  const settings = feedSettings("postgresNotifyFeed", options, ["channel"]);
  const { channel = "xcache" } = options;
  requireName("postgresNotifyFeed", "channel", channel);
  return new RunningFeed(options, settings, {
    leader: new NotifyLeader(channel),
    identity: `notify ${channel}`,
    readCatalogue: (sql) => Catalogue.ofTriggers(sql, channel, settings.tables),
    clock: internals.clock ?? systemClock,
    timeoutMs: internals.timeoutMs ?? linkTimeout(settings.silentForMs),
  });
}

/** Longer than the server takes between two signs of life. */
const linkTimeout = (silentForMs: number): number => Math.max(10_000, 5 * silentForMs);
