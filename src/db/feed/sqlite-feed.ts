// Invalidation when a file of SQLite has changed, by `PRAGMA data_version`: a number that differs once any other connection
// has committed. It says neither what was changed nor by whom, so all tables are dropped.
import { areFeedsAlive, attachFeed } from "../../core/attached-feeds.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { ConnectionError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import type { HealthCheckItem } from "../../core/stats.ts";
import { expect, feedTables, type SqliteFeedOptions } from "./feed-options.ts";
import { type Feed, FeedCounts, type FeedStatus, healthOf } from "./feed-status.ts";
import { Pauses } from "./signal.ts";
import { tagsOfAll } from "./transaction-tags.ts";

const DEFAULT_INTERVAL = 0.1;

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD. */
export function startSqliteFeed(options: SqliteFeedOptions, clock: Clock = systemClock): Feed {
  const tables = feedTables("sqliteFeed", options, ["database", "interval"]);
  const { database, interval = DEFAULT_INTERVAL } = options;
  const isDatabase = typeof database?.prepare === "function";
  expect("sqliteFeed", isDatabase, "database", "a connection with a method prepare", database);
  return new SqliteFeed(options, tables, ttlToMs(interval, "interval"), clock);
}

class SqliteFeed implements Feed {
  readonly rows = false;
  readonly #options: SqliteFeedOptions;
  readonly #tables: readonly string[];
  readonly #intervalMs: number;
  readonly #clock: Clock;
  readonly #counts: FeedCounts;
  readonly #pauses: Pauses;
  readonly #loop: Promise<void>;
  readonly #detach: () => void;
  #statement: { get(): unknown } | undefined;
  /** The version whose predecessors have been dropped. */
  #dropped: string | undefined;
  #dropping: Promise<void> | undefined;
  #error: Error | undefined;
  #isClosed = false;

  constructor(options: SqliteFeedOptions, tables: readonly string[], intervalMs: number, clock: Clock) {
    this.#options = options;
    this.#tables = tables;
    this.#clock = clock;
    this.#counts = new FeedCounts(options);
    this.#pauses = new Pauses(clock);
    this.#intervalMs = intervalMs;
    this.#detach = attachFeed(options.cache, this);
    this.#loop = this.#watch();
  }

  /** Looks at the file itself, so what is served is never older than the read. */
  isAlive(): boolean {
    const version = this.#version();
    if (version === undefined) return false;
    if (version !== this.#dropped) this.#drop();
    return version === this.#dropped;
  }

  covers(table: string): boolean {
    return this.#tables.includes(table.toLowerCase());
  }

  rowKey(): undefined {
    return undefined;
  }

  async ready(): Promise<void> {
    while (!this.isAlive()) {
      if (this.#isClosed) throw new ConnectionError("the feed was closed", { code: "DISCONNECTED" });
      if (this.#error !== undefined && this.#dropping === undefined) throw this.#error;
      await this.#dropping;
      // A cache that does not confirm is given time.
      if (!this.isAlive()) await this.#pauses.pause(this.#intervalMs, true);
    }
  }

  status(): FeedStatus {
    const alive = this.isAlive();
    const { gaps, invalidations, lag } = this.#counts;
    return {
      role: this.#isClosed ? "down" : "leader",
      alive,
      silence: alive ? 0 : undefined,
      lag,
      position: this.#dropped,
      waiting: this.#dropping === undefined ? undefined : "the cache has not confirmed an invalidation",
      error: this.#error?.message,
      gaps,
      elections: 0,
      invalidations,
    };
  }

  health(): HealthCheckItem {
    return healthOf(this.status());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#detach();
    this.#pauses.end();
    await this.#loop;
    await this.#dropping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** undefined: the file cannot be read. */
  #version(): string | undefined {
    if (this.#isClosed) return undefined;
    try {
      this.#statement ??= this.#options.database.prepare("PRAGMA data_version");
      const row = this.#statement.get() as { readonly data_version?: unknown } | undefined;
      this.#error = undefined;
      return String(row?.data_version);
    } catch (error) {
      this.#error = toError(error);
      return undefined;
    }
  }

  #drop(): void {
    this.#dropping ??= this.#dropAll().finally(() => {
      this.#dropping = undefined;
    });
  }

  async #dropAll(): Promise<void> {
    const began = this.#clock.now();
    // What is committed from here on is a later version.
    const version = this.#version();
    try {
      await this.#options.cache.invalidateTags(tagsOfAll(this.#tables, false));
    } catch {
      // Tried again at the next look; until then readers bypass the cache.
      return;
    }
    if (this.#dropped === undefined) this.#counts.gap();
    else this.#counts.invalidated(1, (this.#clock.now() - began) / 1_000);
    this.#dropped = version;
  }

  async #watch(): Promise<void> {
    while (!this.#isClosed) {
      this.#counts.alive(this.isAlive() && areFeedsAlive(this.#options.cache));
      await this.#pauses.pause(this.#intervalMs, false);
    }
  }
}
