// The options of a feed, and their validation.
import { requireFlag, requireOptions } from "../../core/arguments.ts";
import type { CacheForSessions } from "../../core/db-session.ts";
import type { Duration } from "../../core/duration.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import type { Load } from "../../core/options.ts";
import { bareName } from "../tracking/table-tags.ts";

/** A connection string, or the configuration of a `pg.Client`. */
export type PostgresConnection = string | Readonly<Record<string, unknown>>;

/** A `mysql://` address, or the configuration of a connection of mysql2; it names the database. */
export type MysqlConnection = string | Readonly<Record<string, unknown>>;

/** The part of a cache that keeps the record. */
export interface RecordStore {
  get<T>(key: string): Promise<T | undefined>;
  set(key: string, value: unknown, options?: { readonly ttl?: number }): Promise<void>;
  getOrSet<T>(key: string, load: Load<T>, options?: { readonly ttl?: number }): Promise<T>;
}

/** The cache operations that a feed needs; an `XCache` has them. */
export interface CacheForFeed extends Pick<CacheForSessions, "invalidateTags"> {
  namespace(name: string): RecordStore;
}

/** Where a feed counts; a `CacheMetrics` is one. */
export interface FeedMetrics {
  increment(metric: string, value?: number, tags?: Readonly<Record<string, string>>): void;
  gauge(metric: string, value: number, tags?: Readonly<Record<string, string>>): void;
  timing(metric: string, seconds: number, tags?: Readonly<Record<string, string>>): void;
}

export interface FeedOptions {
  /** A connection string, or the configuration of a `pg.Client`, of the primary server. */
  readonly connection: PostgresConnection;
  /** The cache that is invalidated: the one that the sessions use. */
  readonly cache: CacheForFeed;
  /** The tables whose changes must arrive. The feed is down while one of them is not covered. */
  readonly tables: string | readonly string[];
  /** Invalidate single rows by `rowTag`, and tag reads by primary key with it. Default: false. */
  readonly rows?: boolean;
  /** Time without proof that all changes have arrived, after which readers bypass the cache. Default: 2 seconds. */
  readonly silentFor?: Duration;
  /** Default: those of the cache. */
  readonly metrics?: FeedMetrics;
}

export interface PostgresFeedOptions extends FeedOptions {
  /** Default: `xcache`. */
  readonly publication?: string;
  /**
   * `temporary`: nothing is retained for a feed that is gone; after any break everything published is dropped. `durable`:
   * the server retains what a short break misses, under this name. Default: `temporary`.
   */
  readonly slot?: "temporary" | { readonly durable: string };
}

export interface NotifyFeedOptions extends FeedOptions {
  /** The name of the triggers and of the channel they notify. Default: `xcache`. */
  readonly channel?: string;
}

export interface MysqlFeedOptions extends Omit<FeedOptions, "connection"> {
  /** A `mysql://` address, or the configuration of a connection of mysql2. It names the database. */
  readonly connection: MysqlConnection;
}

/** A connection of better-sqlite3, node:sqlite or libsql. */
export interface SqliteDatabase {
  prepare(sql: string): { get(): unknown };
}

export interface SqliteFeedOptions extends Pick<FeedOptions, "cache" | "tables" | "metrics"> {
  /** A connection to the file that nothing else uses: what it commits itself would go unnoticed. */
  readonly database: SqliteDatabase;
  /** Time between two looks at the file; a session looks before every read. Default: 0.1 seconds. */
  readonly interval?: Duration;
}

export interface FeedSettings {
  readonly tables: readonly string[];
  readonly rows: boolean;
  readonly silentForMs: number;
}

const COMMON = ["cache", "tables", "metrics"];
const OF_POSTGRES = ["connection", "rows", "silentFor"];
const DEFAULT_SILENT_FOR = 2;

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD. */
export function feedSettings(
  caller: string,
  options: FeedOptions | MysqlFeedOptions,
  more: readonly string[],
  client = "pg.Client",
): FeedSettings {
  const tables = feedTables(caller, options, [...OF_POSTGRES, ...more]);
  const { connection, rows, silentFor = DEFAULT_SILENT_FOR } = options;
  const isConnection = typeof connection === "string" ? connection !== "" : isObject(connection);
  expect(
    caller,
    isConnection,
    "connection",
    `a connection string or the configuration of a ${client}`,
    connection,
  );
  return { tables, rows: requireFlag(rows, "rows", false), silentForMs: ttlToMs(silentFor, "silentFor") };
}

/** Checks what all feeds have, and returns the bare names of the tables. Throws ConfigError. */
export function feedTables(
  caller: string,
  options: Pick<FeedOptions, "cache" | "tables" | "metrics">,
  more: readonly string[],
): readonly string[] {
  requireOptions(options, [...COMMON, ...more]);
  const { cache, tables, metrics } = options;
  const isCache = [cache?.invalidateTags, cache?.namespace].every((method) => typeof method === "function");
  expect(caller, isCache, "cache", "an XCache", cache);
  const names: readonly unknown[] = Array.isArray(tables) ? tables : [tables];
  const areNames =
    names.length > 0 && names.every((name) => typeof name === "string" && name !== "" && name !== "*");
  expect(caller, areNames, "tables", "a table's name or a list of names", tables);
  const isMetrics =
    metrics === undefined ||
    [metrics?.increment, metrics?.gauge, metrics?.timing].every((method) => typeof method === "function");
  expect(caller, isMetrics, "metrics", "a CacheMetrics", metrics);
  return [...new Set((names as readonly string[]).map(bareName))].sort();
}

/** Throws ConfigError ARGUMENT_INVALID. */
export function requireName(caller: string, what: string, value: unknown): asserts value is string {
  // The longest identifier of PostgreSQL.
  const isName = typeof value === "string" && value !== "" && Buffer.byteLength(value) <= 63;
  expect(caller, isName, what, "a name of 1 to 63 bytes", value);
}

/** Throws ConfigError ARGUMENT_INVALID. */
export function durableSlot(caller: string, slot: unknown): string | undefined {
  if (slot === undefined || slot === "temporary") return undefined;
  const name: unknown = isObject(slot) ? slot.durable : undefined;
  const isSlot = typeof name === "string" && /^[a-z0-9_]{1,63}$/.test(name);
  expect(caller, isSlot, "slot", `"temporary" or { durable: name }, of a-z, 0-9 and _`, name ?? slot);
  return name;
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

export function expect(
  caller: string,
  holds: boolean,
  what: string,
  expected: string,
  arrived: unknown,
): asserts holds {
  // A connection holds a password.
  const shown =
    what === "connection" && typeof arrived === "string" ? "an empty string" : describeArrival(arrived);
  if (!holds)
    throw new ConfigError("ARGUMENT_INVALID", `${caller}(): ${what} must be ${expected}; got ${shown}.`);
}
