// A feed of one database into one cache: one of the cache's processes leads, the others follow its heartbeat.
import { outsideCallers } from "../../core/async-context.ts";
import { areFeedsAlive, attachFeed } from "../../core/attached-feeds.ts";
import type { Clock } from "../../core/clock.ts";
import type { RowKey } from "../../core/db-session.ts";
import { ConfigError, ConnectionError, MissingPeerError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import { redactError } from "../../core/redact.ts";
import type { HealthCheckItem } from "../../core/stats.ts";
import { Beats } from "./beats.ts";
import type { FeedOptions, FeedSettings } from "./feed-options.ts";
import { type Feed, FeedCounts, type FeedStatus, healthOf } from "./feed-status.ts";
import {
  beatMs,
  type ChangeSource,
  catalogueMs,
  type FeedCatalogue,
  type FeedLink,
  type LeaderHost,
} from "./leader.ts";
import { Liveness } from "./liveness.ts";
import { Pauses } from "./signal.ts";

/** Another process leads, or is to. */
class Resignation extends Error {}

export interface FeedParts<Link extends FeedLink, Tables extends FeedCatalogue> {
  readonly source: ChangeSource<Link, Tables>;
  /** What distinguishes this feed from others of the same cache: only equal feeds may follow each other. */
  readonly identity: string;
  readonly clock: Clock;
}

const NAMESPACE = "xcache-feed";
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** So that no call takes longer than a store is given. */
const MOST_TAGS_AT_ONCE = 500;

/** A caller of `ready`. */
interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

export class RunningFeed<Link extends FeedLink, Tables extends FeedCatalogue> implements Feed {
  readonly #options: Pick<FeedOptions, "cache" | "metrics">;
  readonly #settings: FeedSettings;
  readonly #parts: FeedParts<Link, Tables>;
  readonly #liveness: Liveness;
  readonly #beats: Beats;
  readonly #counts: FeedCounts;
  readonly #pauses: Pauses;
  readonly #tables: ReadonlySet<string>;
  readonly #loops: Promise<unknown>;
  readonly #detach: () => void;
  #role: FeedStatus["role"] = "down";
  #catalogue: Tables | undefined;
  #position: string | undefined;
  #waiting: string | undefined;
  #error: Error | undefined;
  #isClosed = false;
  #sql: Link | undefined;
  #waiters: Waiter[] = [];

  constructor(
    options: Pick<FeedOptions, "cache" | "metrics">,
    settings: FeedSettings,
    parts: FeedParts<Link, Tables>,
  ) {
    const { clock, identity } = parts;
    this.#options = options;
    this.#settings = settings;
    this.#parts = parts;
    this.#liveness = new Liveness(clock, settings.silentForMs);
    this.#counts = new FeedCounts(options);
    this.#pauses = new Pauses(clock);
    this.#tables = new Set(settings.tables);
    const key = JSON.stringify([identity, settings.rows, settings.tables]);
    this.#beats = new Beats(options.cache.namespace(NAMESPACE), key, clock);
    this.#detach = attachFeed(options.cache, this);
    this.#loops = outsideCallers(() => Promise.all([this.#run(), this.#follow()]));
  }

  isAlive(): boolean {
    return this.#liveness.isAlive;
  }

  covers(table: string): boolean {
    return this.#tables.has(table.toLowerCase());
  }

  rowKey(table: string): RowKey | undefined {
    return this.#settings.rows ? this.#catalogue?.keys.get(table.toLowerCase()) : undefined;
  }

  get rows(): boolean {
    return this.#settings.rows;
  }

  ready(): Promise<void> {
    if (this.isAlive()) return Promise.resolve();
    if (this.#isClosed) return Promise.reject(closedError());
    if (isLasting(this.#error)) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  status(): FeedStatus {
    const { gaps, elections, invalidations, lag } = this.#counts;
    const isLeader = this.#role === "leader";
    return {
      role: this.#role,
      alive: this.isAlive(),
      silence: this.#liveness.silence,
      lag: isLeader ? lag : undefined,
      position: isLeader ? this.#position : undefined,
      waiting: this.#waiting,
      error: this.#error?.message,
      gaps,
      elections,
      invalidations,
    };
  }

  health(): HealthCheckItem {
    return healthOf(this.status());
  }

  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      this.#detach();
      this.#liveness.forget();
      this.#pauses.end();
      this.#sql?.close();
      for (const { reject } of this.#takeWaiters()) reject(closedError());
    }
    await this.#loops;
    this.#role = "down";
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Connects, leads or follows, and begins again after every failure. */
  async #run(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!this.#isClosed) {
      const elections = this.#counts.elections;
      try {
        await this.#session();
      } catch (error) {
        if (!(error instanceof Resignation)) this.#failed(error);
      }
      // After a time of leading the next failure is a new one.
      retryMs =
        elections === this.#counts.elections ? Math.min(LONGEST_RETRY_MS, 2 * retryMs) : FIRST_RETRY_MS;
      if (!this.#isClosed) await this.#pause(retryMs);
    }
  }

  async #session(): Promise<void> {
    const { clock, source } = this.#parts;
    const sql = await source.open();
    this.#sql = sql;
    try {
      let nextCatalogue = clock.now();
      while (!this.#isClosed) {
        if (clock.now() >= nextCatalogue) {
          nextCatalogue = clock.now() + catalogueMs(this.#settings.silentForMs);
          this.#catalogue = await source.readCatalogue(sql);
        }
        const cache = await this.#beats.identity();
        const key = lockKey(cache);
        if (!(await source.isLed(sql, key))) {
          this.#beats.begin();
          await source.lead(this.#host(cache, this.#catalogue!), sql, key);
        }
        this.#role = "follower";
        this.#error = undefined;
        if (this.isAlive()) sql.release();
        await this.#pause(beatMs(this.#settings.silentForMs));
      }
    } finally {
      this.#role = "down";
      this.#sql = undefined;
      sql.close();
    }
  }

  #host(cache: string, catalogue: Tables): LeaderHost<Link, Tables> {
    const feed = this;
    const { rows, silentForMs } = this.#settings;
    return {
      clock: this.#parts.clock,
      counts: this.#counts,
      rows,
      silentForMs,
      catalogue,
      get isClosed() {
        return feed.#isClosed;
      },
      async refresh(sql) {
        const before = this.catalogue;
        const now = await feed.#parts.source.readCatalogue(sql);
        if (now.version === before.version) return undefined;
        Object.assign(this, { catalogue: now });
        feed.#catalogue = now;
        return [...new Set([...before.names, ...now.names])];
      },
      deliver: (tags, isOver) => this.#deliver(tags, isOver),
      proven: async (at) => {
        this.#prove(at);
        if (!(await this.#beats.send(cache))) throw new Resignation();
      },
      waitFor: (what) => {
        this.#waiting = what;
      },
      reached: (position) => {
        this.#position = position;
      },
      elected: () => {
        this.#role = "leader";
        this.#error = undefined;
        this.#counts.elected();
      },
    };
  }

  /** Nothing counts as invalidated before the cache has confirmed it. */
  async #deliver(tags: readonly string[], isOver: () => boolean): Promise<void> {
    for (let at = 0; at < tags.length; at += MOST_TAGS_AT_ONCE) {
      await this.#deliverPart(tags.slice(at, at + MOST_TAGS_AT_ONCE), isOver);
    }
  }

  async #deliverPart(tags: readonly string[], isOver: () => boolean): Promise<void> {
    for (let retryMs = FIRST_RETRY_MS / 2; ; retryMs = Math.min(LONGEST_RETRY_MS / 5, 2 * retryMs)) {
      try {
        await this.#options.cache.invalidateTags(tags);
        this.#waiting = undefined;
        return;
      } catch (error) {
        if (this.#isClosed || isOver()) throw error;
        this.#waiting = "the cache does not confirm invalidations";
        await this.#pause(retryMs);
      }
    }
  }

  /** Reads the leader's beats. Also while this process has no connection to the database itself. */
  async #follow(): Promise<void> {
    while (!this.#isClosed) {
      if (this.#role !== "leader") {
        const at = await this.#beats.receive().catch(() => undefined);
        if (at !== undefined) this.#prove(at);
      }
      this.#counts.alive(this.isAlive() && areFeedsAlive(this.#options.cache));
      await this.#pause(beatMs(this.#settings.silentForMs));
    }
  }

  #prove(at: number): void {
    if (this.#isClosed) return;
    this.#liveness.prove(at);
    if (!this.isAlive()) return;
    for (const { resolve } of this.#takeWaiters()) resolve();
  }

  #failed(cause: unknown): void {
    if (this.#isClosed) return;
    const error = redactError(toError(cause));
    this.#error = error;
    if (!isLasting(error)) return;
    for (const { reject } of this.#takeWaiters()) reject(error);
  }

  #takeWaiters(): readonly Waiter[] {
    const waiters = this.#waiters;
    this.#waiters = [];
    return waiters;
  }

  /** The process stays alive while somebody waits for the feed. */
  #pause(ms: number): Promise<void> {
    return this.#pauses.pause(ms, this.#waiters.length > 0);
  }
}

/** It will not go away without somebody's doing. */
function isLasting(error: Error | undefined): error is Error {
  return error instanceof ConfigError || error instanceof MissingPeerError;
}

function closedError(): ConnectionError {
  return new ConnectionError("the feed was closed", { code: "DISCONNECTED" });
}

function lockKey(cache: string): bigint {
  return nodeCrypto().createHash("sha256").update(`xcache feed ${cache}`).digest().readBigInt64BE(0);
}
