// A connection of kysely whose queries are watched. It stands for one of the library's, which is taken when it is needed.
import type {
  ConnectionDriver,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
  TransactionStatus,
} from "../../core/db-session.ts";
import { isServerRefusal } from "../pg/driver.ts";
import type { SqlDialect } from "../sql/sql-tokens.ts";
import { isPlain } from "../tracking/plain-value.ts";
import { type ConnectionSource, PoolCheckout } from "../tracking/pool-checkout.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { CompiledQuery, DatabaseConnection, QueryExecutor, QueryResult } from "./library.ts";
import { SAMPLE, sampleDigest } from "./sample.ts";

type Row = Readonly<Record<string, unknown>>;

/** Where connections come from: a driver, or another session. */
export interface Connections {
  readonly dialect: SqlDialect;
  /** Stands for all of them. */
  readonly pool: object;
  take(): Promise<DatabaseConnection>;
  giveBack(connection: DatabaseConnection): void;
}

export type Source = ConnectionSource<DatabaseConnection>;

export function sourceOf(connections: Connections, tracker: SessionTracker): Source {
  const { dialect, pool } = connections;
  const tracked = new WeakMap<DatabaseConnection, TrackedConnection>();
  return {
    pool,
    async take() {
      const connection = await connections.take();
      // SQLite has one connection, which nobody else can have changed.
      if (dialect === "postgres" || !tracked.has(connection)) {
        tracked.set(
          connection,
          tracker.connection(connection, () => driverOf(connection, dialect)),
        );
      }
      return connection;
    },
    giveBack: (connection) => connections.giveBack(connection),
    track: (connection) => tracked.get(connection)!,
    isLost: (error) => dialect === "postgres" && !isRefusal(error),
  };
}

export class WatchedConnection implements DatabaseConnection {
  readonly #lease: PoolCheckout<DatabaseConnection>;
  readonly #source: Source;

  constructor(tracker: SessionTracker, source: Source) {
    this.#lease = new PoolCheckout(tracker, source);
    this.#source = source;
  }

  executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { sql: text, parameters: values } = query;
    return this.#lease.run<QueryResult<R>>({ text, values, restore }, (connection) =>
      statementOf(connection, query),
    );
  }

  /** Not cached. It is under way until its reader has had enough. */
  async *streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    const connection = await this.#lease.take();
    let begin = (): void => {};
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
    });
    let end = (_failure?: { readonly error: unknown }): void => {};
    const over = new Promise<void>((resolve, reject) => {
      end = (failure) => (failure === undefined ? resolve() : reject(failure.error));
    });
    const execute = (): Promise<void> => {
      begin();
      return over;
    };
    const running = this.#source.track(connection).run({ text: query.sql, execute });
    await turn;
    try {
      yield* connection.streamQuery<R>(query, chunkSize);
    } catch (error) {
      end({ error });
    } finally {
      end();
      await running;
    }
  }

  release(): void {
    this.#lease.release();
  }
}

function statementOf<R>(
  connection: DatabaseConnection,
  query: CompiledQuery,
): SessionStatement<QueryResult<R>> {
  const execute = () => connection.executeQuery<R>(query);
  return {
    text: query.sql,
    values: query.parameters,
    execute,
    keeping: { fetch: execute, isKeepable: isPlain, restore },
  };
}

function restore<R>(data: unknown): QueryResult<R> | undefined {
  const isResult = typeof data === "object" && data !== null && "rows" in data && Array.isArray(data.rows);
  return isResult ? (data as QueryResult<R>) : undefined;
}

function driverOf(connection: DatabaseConnection, dialect: SqlDialect): ConnectionDriver {
  const all = async (text: string, values: readonly string[]): Promise<readonly Row[]> =>
    (await connection.executeQuery<Row>(queryOf(text, values))).rows;
  return dialect === "sqlite" ? new SqliteDriver({ all }) : new PostgresDriver(all);
}

class PostgresDriver implements ConnectionDriver {
  readonly dialect = "postgres";
  /** The address is the library's secret; the server tells which one it is. */
  readonly database = "kysely";
  readonly #all: ConnectionDriver["ask"];
  #sample: string | undefined;

  constructor(all: ConnectionDriver["ask"]) {
    this.#all = all;
  }

  async ask(text: string, values: readonly string[]): Promise<readonly Row[]> {
    this.#sample ??= sampleDigest((await this.#all(SAMPLE, []))[0]);
    const [row] = await this.#all(text, values);
    return [{ ...row, fingerprint: `${String(row?.fingerprint)}${this.#sample}` }];
  }

  isRefusal(error: unknown): boolean {
    return isRefusal(error);
  }
}

function isRefusal(error: unknown): boolean {
  // What a lost client says of a statement that it has not sent.
  return isServerRefusal(error) || (error instanceof Error && error.message.includes("is not queryable"));
}

/** As the library's `CompiledQuery.raw` makes it. */
function queryOf(sql: string, parameters: readonly unknown[]): CompiledQuery {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "xcache" },
  } as CompiledQuery;
}

/** A transaction that was begun where nobody watched: it is open until it is told to end, and its reads are its own. */
export function foreignTransaction(
  executor: Pick<QueryExecutor, "provideConnection">,
  dialect: SqlDialect,
  tracker: SessionTracker,
): Source {
  let isOver = false;
  const connection: DatabaseConnection = {
    async executeQuery<R>(query: CompiledQuery) {
      const result = await executor.provideConnection((held) => held.executeQuery<R>(query));
      if (/^(commit|rollback)$/i.test(query.sql)) isOver = true;
      return result;
    },
    async *streamQuery<R>(query: CompiledQuery, chunkSize?: number) {
      const held = await executor.provideConnection(async (found) => found);
      yield* held.streamQuery<R>(query, chunkSize);
    },
  };
  const driver = driverOf(connection, dialect);
  const status = (): TransactionStatus => (isOver ? "idle" : "open");
  const tracked = tracker.connection(connection, () => Object.assign(driver, { status }));
  return { pool: executor, take: async () => connection, giveBack: () => {}, track: () => tracked };
}
