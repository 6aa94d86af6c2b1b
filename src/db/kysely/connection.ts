// A watched kysely connection. It takes one of kysely's own connections when a query first needs it.
import type {
  BypassListener,
  ConnectionDriver,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";
import { types } from "../../core/lazy-builtin.ts";
import { isPlain, snapshot } from "../../core/snapshot.ts";
import { isServerRefusal } from "../pg/driver.ts";
import type { SqlDialect } from "../sql/sql-tokens.ts";
import { bypassOf } from "../tracking/bypass.ts";
import { type ConnectionSource, PoolCheckout } from "../tracking/pool-checkout.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { CompiledQuery, DatabaseConnection, QueryExecutor, QueryResult } from "./library.ts";

type Row = Readonly<Record<string, unknown>>;

/** Where connections come from: a driver, or another session. */
export interface Connections {
  readonly dialect: SqlDialect;
  /** Identifies the pool they belong to. */
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
      // SQLite has a single connection, so nothing else can have changed it.
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
  readonly #checkout: PoolCheckout<DatabaseConnection>;
  readonly #source: Source;

  constructor(tracker: SessionTracker, source: Source) {
    this.#checkout = new PoolCheckout(tracker, source);
    this.#source = source;
  }

  executeQuery<R>(given: CompiledQuery): Promise<QueryResult<R>> {
    const { sql: text, parameters } = given;
    const values = snapshot(parameters);
    const query = { ...given, parameters: values };
    return this.#checkout.run<QueryResult<R>>({ text, values, restore }, (connection) =>
      statementOf(connection, query),
    );
  }

  /** Not cached. The statement runs until its reader stops. */
  async *streamQuery<R>(query: CompiledQuery, chunkSize: number): AsyncIterableIterator<QueryResult<R>> {
    const connection = await this.#checkout.take();
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
    this.#checkout.release();
  }
}

function statementOf<R>(
  connection: DatabaseConnection,
  query: CompiledQuery,
): SessionStatement<QueryResult<R>> {
  const execute = () => bypassOf(connection).own(() => connection.executeQuery<R>(query));
  return {
    text: query.sql,
    values: query.parameters,
    execute,
    cacheable: { fetch: execute, isCacheable: isPlain, restore },
  };
}

function restore<R>(data: unknown): QueryResult<R> | undefined {
  const isResult = typeof data === "object" && data !== null && "rows" in data && Array.isArray(data.rows);
  return isResult ? (data as QueryResult<R>) : undefined;
}

function driverOf(
  connection: DatabaseConnection,
  dialect: SqlDialect,
  hasTransaction = false,
): ConnectionDriver {
  const bypass = bypassOf(connection);
  bypass.watch(connection, "executeQuery", ({ sql }) => sql);
  const all = async (text: string, values: readonly string[]): Promise<readonly Row[]> =>
    (await bypass.own(() => connection.executeQuery<Row>(queryOf(text, values)))).rows;
  const driver = dialect === "sqlite" ? new SqliteDriver({ all }) : new PostgresDriver(all);
  const onBypass = (listener: BypassListener): void => bypass.listen(listener);
  return Object.assign(driver, { onBypass, hasTransaction });
}

class PostgresDriver implements ConnectionDriver {
  readonly dialect = "postgres";
  /** kysely does not expose the address; the fingerprint that the server reports identifies it. */
  readonly database = "kysely";
  readonly #all: ConnectionDriver["query"];
  #sample: string | undefined;

  constructor(all: ConnectionDriver["query"]) {
    this.#all = all;
  }

  async query(text: string, values: readonly string[]): Promise<readonly Row[]> {
    this.#sample ??= await this.#digest();
    const [row] = await this.#all(text, values);
    return [{ ...row, fingerprint: `${String(row?.fingerprint)}${this.#sample}` }];
  }

  async #digest(): Promise<string> {
    const { SAMPLE, sampleDigest } = await import("./sample.ts");
    return sampleDigest((await this.#all(SAMPLE, []))[0]);
  }

  isRefusal(error: unknown): boolean {
    return isRefusal(error);
  }
}

function isRefusal(error: unknown): boolean {
  // The error of a lost client for a statement it did not send.
  return isServerRefusal(error) || (types.isNativeError(error) && error.message.includes("is not queryable"));
}

/** The same object as `CompiledQuery.raw` returns. */
function queryOf(sql: string, parameters: readonly unknown[]): CompiledQuery {
  return {
    sql,
    parameters,
    query: { kind: "RawNode", sqlFragments: [sql], parameters: [] },
    queryId: { queryId: "xcache" },
  } as CompiledQuery;
}

/** A transaction that began elsewhere. The code that began it may end it past the tracker. */
export function foreignTransaction(
  executor: Pick<QueryExecutor, "provideConnection">,
  dialect: SqlDialect,
  tracker: SessionTracker,
): Source {
  const tracked = new WeakMap<DatabaseConnection, TrackedConnection>();
  return {
    // It is a single connection, about which the tracker must not learn as about those of a pool.
    get pool() {
      return {};
    },
    async take() {
      const connection = await executor.provideConnection(async (held) => held);
      if (!tracked.has(connection)) {
        const made = tracker.connection(connection, () => driverOf(connection, dialect, true));
        tracked.set(connection, made);
      }
      return connection;
    },
    giveBack: () => {},
    track: (connection) => tracked.get(connection)!,
  };
}
