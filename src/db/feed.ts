// Invalidation from the database's own stream of changes.
import type {
  MysqlFeedOptions,
  NotifyFeedOptions,
  PostgresFeedOptions,
  SqliteFeedOptions,
} from "./feed/feed-options.ts";
import type { Feed } from "./feed/feed-status.ts";
import { startSqliteFeed } from "./feed/sqlite-feed.ts";
import { startMysqlFeed, startNotifyFeed, startPostgresFeed } from "./feed/start.ts";

export type {
  CacheForFeed,
  FeedMetrics,
  FeedOptions,
  MysqlConnection,
  MysqlFeedOptions,
  NotifyFeedOptions,
  PostgresConnection,
  PostgresFeedOptions,
  SqliteDatabase,
  SqliteFeedOptions,
} from "./feed/feed-options.ts";
export type { Feed, FeedStatus } from "./feed/feed-status.ts";
export { type RowId, rowsTag, rowTag } from "./tracking/table-tags.ts";

/**
 * Invalidates what any program commits to PostgreSQL, through logical replication. Begins at once, in the background. Throws
 * ConfigError for invalid options.
 *
 * @example
 * ```ts
 * const feed = postgresFeed({ connection: "postgres://localhost/shop", cache, tables: ["users"] });
 * await feed.ready();
 * const getPool = cachedDependency(() => pool, { cache, tableName: "users", feed });
 * ```
 */
export function postgresFeed(options: PostgresFeedOptions): Feed {
  return startPostgresFeed(options, {});
}

/**
 * For servers without logical replication: triggers notify of changed tables, so rows are always dropped together, and
 * commits that notify are serialised by PostgreSQL. Throws ConfigError for invalid options.
 */
export function postgresNotifyFeed(options: NotifyFeedOptions): Feed {
  return startNotifyFeed(options, {});
}

/**
 * Invalidates what any program commits to MariaDB, from its binary log in the row format. Begins at once, in the background.
 * Throws ConfigError for invalid options.
 */
export function mysqlFeed(options: MysqlFeedOptions): Feed {
  return startMysqlFeed(options, {});
}

/**
 * Invalidates the tables when any other connection, of this process or another, has committed to a file of SQLite. Sessions
 * look at the file before each read. Throws ConfigError for invalid options.
 */
export function sqliteFeed(options: SqliteFeedOptions): Feed {
  return startSqliteFeed(options);
}
