// Watches the statements and transactions of prisma's adapter for MySQL and MariaDB, which uses the package mariadb.
import type {
  ConnectionDriver,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
  TransactionStatus,
} from "../../core/db-session.ts";
import {
  isForNextTransaction,
  isRefusedBy,
  isRolledBackBy,
  isWithoutEscapes,
  statusIn,
} from "../mysql2/server-status.ts";
import {
  type MariadbAdapter,
  type MariadbConnection,
  type ResultSet,
  restoreResult,
  type SqlQuery,
} from "./library.ts";

type Call = "query" | "execute";

export function watchedMariadb(adapter: MariadbAdapter, tracker: SessionTracker): MariadbAdapter {
  const { client: pool, mariadbOptions } = adapter;
  const take = async (): Promise<WatchedConnection> => {
    const connection = await pool.getConnection();
    return { connection, ...driverOf(connection, tracker) };
  };
  /** The adapter's own method over one connection of the pool. */
  const pooled = <Result>(
    query: SqlQuery,
    work: (over: MariadbAdapter) => Promise<Result>,
    restore?: Restore<Result>,
  ) => {
    const text = query.sql;
    // Part of the key: how a value is sent depends on its type and the adapter's options.
    const values = [...query.args, JSON.stringify([query.argTypes, mariadbOptions])];
    return tracker.pooled<Result>(pool, { text, values, restore }, async () => {
      const { connection, driver, tracked } = await take();
      const execute = () => driver.send(text, () => work(overClient(adapter, connection)));
      const cacheable = restore && { fetch: execute, restore };
      const statement: SessionStatement<Result> = { text: driver.textOf(text), values, execute, cacheable };
      return { connection: tracked, statement, release: () => void connection.release().catch(() => {}) };
    });
  };
  const own = {
    queryRaw: (query: SqlQuery) => pooled<ResultSet>(query, (over) => over.queryRaw(query), restoreResult),
    executeRaw: (query: SqlQuery) => pooled<number>(query, (over) => over.executeRaw(query)),
    startTransaction: (level?: string) => {
      const getConnection = async () => inTurn(await take());
      return overClient(adapter, { getConnection }).startTransaction(level);
    },
  };
  return Object.assign(Object.create(adapter) as MariadbAdapter, own);
}

type Restore<Result> = (data: unknown) => Result | undefined;

interface WatchedConnection {
  readonly connection: MariadbConnection;
  readonly driver: MariadbDriver;
  readonly tracked: TrackedConnection;
}

const drivers = new WeakMap<object, MariadbDriver>();

/** Call it whenever a connection is handed out. The library has a new object for it each time, but one `info`. */
function driverOf(
  connection: MariadbConnection,
  tracker: SessionTracker,
): Pick<WatchedConnection, "driver" | "tracked"> {
  const { info } = connection;
  const driver = drivers.get(info) ?? new MariadbDriver(connection);
  drivers.set(info, driver);
  return { driver, tracked: tracker.connection(info, () => driver) };
}

function overClient(adapter: MariadbAdapter, client: object): MariadbAdapter {
  return Object.create(adapter, { client: { value: client } }) as MariadbAdapter;
}

/** The connection of a transaction. Reads are not cached there: it reads a snapshot. */
function inTurn({ connection, driver, tracked }: WatchedConnection): object {
  const sending =
    (method: Call) =>
    (options: { readonly sql: string }, values?: unknown): Promise<unknown> =>
      tracked.run({
        text: driver.textOf(options.sql),
        execute: () => driver.send(options.sql, () => connection[method](options, values)),
      });
  return {
    query: sending("query"),
    execute: sending("execute"),
    release: () => connection.release(),
    on: connection.on.bind(connection),
    off: connection.off.bind(connection),
  };
}

class MariadbDriver implements ConnectionDriver {
  readonly dialect = "mysql";
  readonly database: string;
  readonly #connection: MariadbConnection;
  /** Whether the last answer contained the status: an error does not. */
  #isKnown = true;
  #isForNext = false;

  constructor(connection: MariadbConnection) {
    this.#connection = connection;
    this.database = `prisma:${connection.info.port ?? ""}`;
  }

  /** Sends a statement of the session. */
  async send<Result>(text: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      this.#isKnown = false;
      throw error;
    } finally {
      this.#isForNext = isForNextTransaction(text);
    }
  }

  /** undefined: what the text means depends on a mode of the server. */
  textOf(text: string): string | undefined {
    return isWithoutEscapes(this.#flags) ? undefined : text;
  }

  async query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    // Whatever the application has configured.
    const options = {
      sql: text,
      rowsAsArray: false,
      nestTables: false,
      namedPlaceholders: false,
      metaAsArray: false,
    };
    return (await this.#connection.query(options)) as Readonly<Record<string, unknown>>[];
  }

  status(): TransactionStatus {
    return !this.#isKnown || this.#isForNext ? "open" : statusIn(this.#flags);
  }

  async ready(): Promise<void> {
    if (this.#isKnown || !this.isUsable()) return;
    // An error is that of the statement which follows.
    await this.#connection.ping().then(
      () => {
        this.#isKnown = true;
      },
      () => {},
    );
  }

  isUsable(): boolean {
    return this.#connection.isValid();
  }

  isRefusal(error: unknown): boolean {
    const { errno, isFatal } = failureOf(error);
    return errno !== undefined && errno < FIRST_OF_LIBRARY && !isFatal && isRefusedBy(errno);
  }

  isRollback(error: unknown): boolean {
    const { errno } = failureOf(error);
    return errno !== undefined && isRolledBackBy(errno);
  }

  get #flags(): number {
    return this.#connection.info.status ?? 0;
  }
}

/** Errors that the library itself raises have numbers from here on. */
const FIRST_OF_LIBRARY = 45_000;

/** The library's own error, or what the adapter makes of it. */
function failureOf(error: unknown): { readonly errno: number | undefined; readonly isFatal: boolean } {
  const { cause, errno, fatal } = Object(error) as {
    readonly cause?: { readonly originalCode?: string } | null;
    readonly errno?: unknown;
    readonly fatal?: unknown;
  };
  const code = errno ?? cause?.originalCode;
  return { errno: code === undefined ? undefined : Number(code), isFatal: fatal === true };
}
