// A connection to SQLite as the tracker sees it, whichever library sends the statements.
import { hostname } from "node:os";
import type { ConnectionDriver, TransactionStatus } from "../core/session.ts";

/** Errors of the file itself, after which it is not known what was written. */
const NO_REFUSAL = /^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL)/;

export interface SqliteConnection {
  all(text: string, values: readonly string[]): Promise<unknown>;
  /** Absent: the library hides it. */
  readonly inTransaction?: (() => unknown) | undefined;
}

export class SqliteDriver implements ConnectionDriver {
  readonly dialect = "sqlite";
  /** The path is asked of the database; another machine may have another file there. */
  readonly database = hostname();
  readonly status?: () => TransactionStatus | undefined;
  readonly #connection: SqliteConnection;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const { inTransaction } = connection;
    if (typeof inTransaction?.() === "boolean") this.status = () => (inTransaction() ? "open" : "idle");
  }

  async ask(text: string, values: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    return (await this.#connection.all(text, values)) as Readonly<Record<string, unknown>>[];
  }

  /** Nothing is between it and the file: what it throws is what happened. */
  isRefusal(error: unknown): boolean {
    const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
    return !(typeof code === "string" && NO_REFUSAL.test(code));
  }
}
