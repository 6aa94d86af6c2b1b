// Watches the statements and transactions of prisma's libsql adapter.
import type { ConnectionDriver, SessionTracker, TrackedConnection } from "../../core/db-session.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import {
  type LibsqlAdapter,
  type LibsqlTransaction,
  type ResultSet,
  restoreResult,
  type SqlQuery,
} from "./library.ts";

type Queryable = LibsqlAdapter | LibsqlTransaction;

/** Errors of the file itself, after which it is unknown what was written: IOERR, CORRUPT, PROTOCOL, NOTADB. */
const NO_REFUSAL = [10, 11, 15, 26];

export function watchedLibsql(adapter: LibsqlAdapter, tracker: SessionTracker): LibsqlAdapter {
  const connection = tracker.connection(adapter, () => new LibsqlDriver(adapter, isFile(adapter)));
  const executeScript = async (script: string): Promise<void> => {
    try {
      await connection.run({ text: script, execute: () => adapter.executeScript(script) });
    } finally {
      // The library rolls back a transaction that the script left open.
      await connection.run({ text: "ROLLBACK", execute: async () => {} });
    }
  };
  const startTransaction: LibsqlAdapter["startTransaction"] = async (level) =>
    watchedTransaction(await adapter.startTransaction(level), tracker, isFile(adapter));
  return Object.create(adapter, {
    ...statements(adapter, connection),
    executeScript: { value: executeScript },
    startTransaction: { value: startTransaction },
  }) as LibsqlAdapter;
}

/** The transaction has begun on its own connection and reads a snapshot. Savepoints inside it are plain statements. */
function watchedTransaction(
  transaction: LibsqlTransaction,
  tracker: SessionTracker,
  isLocal: boolean,
): LibsqlTransaction {
  const connection = tracker.connection(transaction, () => {
    const status = () => (transaction.client.closed ? "idle" : "open");
    return Object.assign(new LibsqlDriver(transaction, isLocal), { status } as const);
  });
  const commit = () => connection.run({ text: "COMMIT", execute: () => transaction.commit() });
  const rollback = () => connection.run({ text: "ROLLBACK", execute: () => transaction.rollback() });
  return Object.create(transaction, {
    ...statements(transaction, connection),
    commit: { value: commit },
    rollback: { value: rollback },
  }) as LibsqlTransaction;
}

function statements(queryable: Queryable, connection: TrackedConnection): PropertyDescriptorMap {
  const options: unknown = queryable.adapterOptions;
  const queryRaw = (query: SqlQuery): Promise<ResultSet> => {
    const fetch = () => queryable.queryRaw(query);
    return connection.run({
      text: query.sql,
      // Part of the key: how a value is sent depends on its type and the adapter's options.
      values: [...query.args, JSON.stringify([query.argTypes, options])],
      execute: fetch,
      cacheable: { fetch, restore: restoreResult },
    });
  };
  const executeRaw = (query: SqlQuery): Promise<number> =>
    connection.run({ text: query.sql, execute: () => queryable.executeRaw(query) });
  return { queryRaw: { value: queryRaw }, executeRaw: { value: executeRaw } };
}

/** Any other protocol means a server, which may answer from a replica. */
function isFile({ client }: LibsqlAdapter): boolean {
  return client.protocol === "file";
}

class LibsqlDriver extends SqliteDriver implements ConnectionDriver {
  readonly #isLocal: boolean;

  constructor(queryable: Queryable, isLocal: boolean) {
    super({ all: (text, values) => queryRows(queryable, text, values) });
    this.#isLocal = isLocal;
  }

  override async query(
    text: string,
    values: readonly string[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows = await super.query(text, values);
    // The library reopens connections, and each has its own in-memory database.
    return rows.map((row) => (this.#isLocal && row.file !== "" ? row : { ...row, unshareable: "true" }));
  }

  /** The library passes on SQLite's error number; over a network there may be none. */
  override isRefusal(error: unknown): boolean {
    const { cause, rawCode } = Object(error) as {
      cause?: { originalCode?: string } | null;
      rawCode?: number;
    };
    const code = rawCode ?? cause?.originalCode;
    return code === undefined ? this.#isLocal : !NO_REFUSAL.includes(Number(code) & 0xff);
  }
}

async function queryRows(
  queryable: Queryable,
  sql: string,
  args: readonly string[],
): Promise<readonly Record<string, unknown>[]> {
  const argTypes = args.map(() => ({ scalarType: "string", arity: "scalar" }) as const);
  const { columnNames, rows } = await queryable.queryRaw({ sql, args: [...args], argTypes });
  return rows.map((row) => Object.fromEntries(columnNames.map((name, at) => [name, row[at]])));
}
