// The contract between cachedDependency, the session tracker and the adapter of each database library.
import type { GetOrSetOptions, Load } from "./options.ts";

/** Settings of one table, from the cache's configuration. */
export interface TableSettings {
  /** Seconds. Default: the cache's own. */
  readonly ttl?: number;
  /** Tags its entries carry besides the table's own. */
  readonly tags?: readonly string[];
}

/** The cache operations that database sessions need. */
export interface CacheForSessions {
  get<T>(key: string): Promise<T | undefined>;
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  invalidateTags(tags: readonly string[]): Promise<void>;
  /** By table name. */
  readonly tables?: Readonly<Record<string, TableSettings>>;
}

/** A column of a primary key, and how its values are compared. `number`: an integer that may be compared as a double. */
export interface KeyColumn {
  readonly name: string;
  readonly kind: "integer" | "number" | "text" | "uuid";
}

/** The primary key of a table, in order. */
export type RowKey = readonly KeyColumn[];

/** A stream of the database's changes that invalidates what any program commits, as sessions see it. */
export interface ChangeFeed {
  /** Whether cached reads of the covered tables may be served now. */
  isAlive(): boolean;
  /** Whether the changes of this table arrive. */
  covers(table: string): boolean;
  /** The primary key by which reads of this table are tagged. undefined: by table only. */
  rowKey(table: string): RowKey | undefined;
  /** Whether some reads are tagged by row. */
  readonly rows: boolean;
}

/** What a session tracker caches, and where. */
export interface SessionScope {
  readonly cache: CacheForSessions;
  /** The tables whose reads are cached; `*`: all. */
  readonly tables: readonly string[];
  /** Seconds. Default: the smallest of the tables', else the cache's own. */
  readonly ttl?: number;
  /** Default: only commits through the sessions invalidate. */
  readonly feed?: ChangeFeed;
}

/**
 * Wraps the sessions of one library. The tracker does everything that is common to all libraries; an adapter says which
 * calls send SQL, over which connection, and what their results look like.
 */
export interface SessionAdapter<Session extends object = object> {
  /** The library, for messages. */
  readonly name: string;
  /** Whether this is a session of the library. Must not throw or send anything. */
  recognises(session: object): session is Session;
  /** The SQL that the session sends, for `explain`. Default: not known. */
  dialect?(session: Session): SqlDialectName | undefined;
  /** The session its user gets instead: everything the original has, with its SQL routed through the tracker. */
  wrap(session: Session, tracker: SessionTracker): Session;
}

export interface SessionTracker {
  /**
   * The tracked form of a connection, the same object for the same `connection`; `driver` is called the first time only.
   * Call it whenever the connection passes to another user: its settings are then read again.
   */
  connection(connection: object, driver: () => ConnectionDriver): TrackedConnection;
  /**
   * Runs a statement on any free connection of a pool; `acquire` is called only on a cache miss. `pool` identifies the
   * pool: what is learnt about its connections is stored under it.
   */
  pooled<Result>(
    pool: object,
    statement: PooledStatement<Result>,
    acquire: () => Promise<AcquiredConnection<Result>>,
  ): Promise<Result>;
}

/** Cache options of one read. */
export interface StatementOptions {
  /** Tags in addition to those of its tables. */
  readonly tags?: readonly string[];
  /** Seconds. Default: as for its tables. */
  readonly ttl?: number | undefined;
}

/** A statement that is not assigned to a connection yet. */
export interface PooledStatement<Result>
  extends Pick<SessionStatement<Result>, "text" | "values" | "options"> {
  readonly restore?: CacheableResult<Result>["restore"] | undefined;
}

/** A connection of a pool, for one statement. */
export interface AcquiredConnection<Result> {
  readonly connection: TrackedConnection;
  /** The statement as it is sent over this connection. */
  readonly statement: SessionStatement<Result>;
  /** Called once; `error`: what the statement failed with. */
  release(error?: unknown): void;
}

/** A connection whose statements run one after another, as in the database. */
export interface TrackedConnection {
  run<Result>(statement: SessionStatement<Result>): Promise<Result>;
  /** The connection's settings may have changed without the tracker noticing. */
  settingsChanged(): void;
}

export interface SessionStatement<Result> {
  /** undefined: unknown, so it may have changed anything. */
  readonly text: string | undefined;
  readonly values?: readonly unknown[] | undefined;
  readonly options?: StatementOptions | undefined;
  /** Sends it as the library would, and returns what its user gets. */
  execute(): Promise<Result>;
  /** How its result is cached. Absent: it is never cached. */
  readonly cacheable?: CacheableResult<Result> | undefined;
  /** The command tags of a result (`SELECT`, `COMMIT`), one per statement of the text, where the library exposes them. */
  commands?(result: Result): readonly string[];
}

export interface CacheableResult<Result> {
  /** Sends the statement and returns its result as plain data. */
  fetch(): Promise<unknown>;
  /** Whether the fetched data survives a round trip through the cache unchanged. Default: yes. */
  isCacheable?(data: unknown): boolean;
  /** What the library would have returned; undefined if `data` is not what `fetch` returns. */
  restore(data: unknown): Result | undefined;
}

/** `failed`: in a transaction that can only be rolled back. */
export type TransactionStatus = "idle" | "open" | "failed";

/** The databases whose SQL is understood. MariaDB counts as MySQL. */
export type SqlDialectName = "postgres" | "sqlite" | "mysql";

/** What the tracker needs to know about a connection of a library. */
export interface ConnectionDriver {
  readonly dialect: SqlDialectName;
  /** Identifies the database where the server cannot: address and name, or the path of a file. */
  readonly database: string;
  /** Runs one of the tracker's own queries over this connection; resolves to its rows. */
  query(text: string, values: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The status the database reported last. Absent: it is inferred from the statements. */
  status?(): TransactionStatus | undefined;
  /** Resolves when `status` is known, where an answer of the database may not tell it. Default: it always is. */
  ready?(): Promise<void>;
  /** Whether a statement sent now can reach the database. Default: yes. */
  isUsable?(): boolean;
  /** Whether the database itself rejected the statement, so that it certainly had no effect. */
  isRefusal(error: unknown): boolean;
  /** Whether the database rolled the whole transaction back because of this error. Default: it never does. */
  isRollback?(error: unknown): boolean;
  /**
   * Resolves to true once the statement sent last is answered, even if no caller waits for it any more; to false if it
   * never will be because the connection is lost. Absent: unknown outcomes stay unknown.
   */
  answered?(): Promise<boolean>;
  /**
   * Calls `listener` when the database reports any commit on this connection, also one that did not go
   * through the tracker. Absent: such commits go unnoticed, unless `onBypass` reports them.
   */
  onCommit?(listener: () => void): void;
  /** Calls `listener` after each statement on this connection that did not go through the tracker. */
  onBypass?(listener: BypassListener): void;
  /** A transaction was open before the connection was tracked. Default: no, or as `status` says. */
  readonly hasTransaction?: boolean;
}

/** Resolves when what the statement committed is invalidated. Never rejects. `failure`: what it failed with. */
export type BypassListener = (
  text: string | undefined,
  failure: { readonly error: unknown } | undefined,
) => Promise<void>;

/** A session that cachedDependency has handed out; `explain` is asked about it. */
export interface WatchedSession {
  readonly scope: SessionScope;
  /** undefined: the adapter does not tell. */
  readonly dialect: SqlDialectName | undefined;
}

const sessions = new WeakMap<object, WatchedSession>();

export function rememberSession(session: object, watched: WatchedSession): void {
  sessions.set(session, watched);
}

export const watchedSession = (session: object): WatchedSession | undefined => sessions.get(session);
