// The contract between cachedDependency, the machinery that watches database sessions, and one adapter per library.
import type { GetOrSetOptions, Load } from "./options.ts";

/** Settings of one table, from the cache's configuration. */
export interface TableSettings {
  /** Seconds. Default: the cache's own. */
  readonly ttl?: number;
  /** Tags its entries carry besides the table's own. */
  readonly tags?: readonly string[];
}

/** What database sessions need of a cache. */
export interface CacheForSessions {
  get<T>(key: string): Promise<T | undefined>;
  getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T>;
  invalidateTags(tags: readonly string[]): Promise<void>;
  /** By table name. */
  readonly tables?: Readonly<Record<string, TableSettings>>;
}

/** What a session is watched for. */
export interface SessionScope {
  readonly cache: CacheForSessions;
  /** The tables whose reads are cached; `*`: all. */
  readonly tables: readonly string[];
  /** Seconds. Default: the smallest of the tables', else the cache's own. */
  readonly ttl?: number;
}

/**
 * Makes the sessions of one library watched ones. Everything that is the same for all libraries is done by the
 * tracker: an adapter says which calls send SQL, over which connection, and what their results look like.
 */
export interface SessionAdapter<Session extends object = object> {
  /** The library, for messages. */
  readonly name: string;
  /** Whether this is a session of the library. Must neither throw nor send anything. */
  recognises(session: object): session is Session;
  /** What its user sees in its place: everything the session has, with its SQL given to the tracker. */
  wrap(session: Session, tracker: SessionTracker): Session;
}

export interface SessionTracker {
  /**
   * What is known of a connection, the same object for the same `connection`; `driver` is asked for the first time only.
   * Call it whenever the connection passes to another user: what was known of its settings is asked again.
   */
  connection(connection: object, driver: () => ConnectionDriver): TrackedConnection;
  /**
   * Runs a statement on whichever connection of a pool is free; `acquire` is called only when one is needed.
   * `pool` stands for the pool: what is learnt of its connections is kept under it.
   */
  pooled<Result>(
    pool: object,
    statement: PooledStatement<Result>,
    acquire: () => Promise<AcquiredConnection<Result>>,
  ): Promise<Result>;
}

/** What the application has said about one read. */
export interface StatementTerms {
  /** Tags besides those of its tables. */
  readonly tags?: readonly string[];
  /** Seconds. Default: as for its tables. */
  readonly ttl?: number | undefined;
}

/** A statement that is not on any connection yet. */
export interface PooledStatement<Result> extends Pick<SessionStatement<Result>, "text" | "values" | "terms"> {
  readonly restore?: Keeping<Result>["restore"] | undefined;
}

/** A connection of a pool, for one statement. */
export interface AcquiredConnection<Result> {
  readonly connection: TrackedConnection;
  /** The statement as it is sent over this connection. */
  readonly statement: SessionStatement<Result>;
  /** Called once; `error`: what the statement failed with. */
  release(error?: unknown): void;
}

/** A connection whose statements are carried out one after another, as the database does. */
export interface TrackedConnection {
  run<Result>(statement: SessionStatement<Result>): Promise<Result>;
  /** Something may have changed the settings of the connection behind the tracker's back. */
  settingsChanged(): void;
}

export interface SessionStatement<Result> {
  /** undefined: not known, so that it may have done anything. */
  readonly text: string | undefined;
  readonly values?: readonly unknown[] | undefined;
  readonly terms?: StatementTerms | undefined;
  /** Sends it as the library would, and returns what its user gets. */
  execute(): Promise<Result>;
  /** How its result is kept. Absent: it is never cached. */
  readonly keeping?: Keeping<Result> | undefined;
  /** The command tags of a result (`SELECT`, `COMMIT`), one for each statement of the text, where the library tells. */
  commands?(result: Result): readonly string[];
}

export interface Keeping<Result> {
  /** Sends the statement and returns its result as plain data. */
  fetch(): Promise<unknown>;
  /** Whether what was fetched comes back from a cache as it went in. Default: yes. */
  isKeepable?(data: unknown): boolean;
  /** What the library would have returned; undefined when this is not what `fetch` returns. */
  restore(data: unknown): Result | undefined;
}

/** `failed`: in a transaction that can only be rolled back. */
export type TransactionStatus = "idle" | "open" | "failed";

/** What the tracker has to know of a connection of some library. */
export interface ConnectionDriver {
  readonly dialect: "postgres" | "sqlite";
  /** Tells databases apart where the server cannot: address and name, or the path of a file. */
  readonly database: string;
  /** Sends a question of the tracker's own, over this connection; resolves to its rows. */
  ask(text: string, values: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** What the database said last. Absent: it is concluded from the statements. */
  status?(): TransactionStatus | undefined;
  /** Whether something that is sent now can reach the database. Default: yes. */
  isUsable?(): boolean;
  /** Whether the database itself refused the statement, so that it surely has no effect. */
  isRefusal(error: unknown): boolean;
  /**
   * Resolves once the statement that was sent last is answered, also to nobody: true. false: it never will be, since the
   * connection is lost. Absent: unknown outcomes stay unknown.
   */
  answered?(): Promise<boolean>;
}
