// A connection to SQLite as the tracker sees it, whichever library sends the statements.
import { hostname } from "node:os";
import type { ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import { nodeCrypto, nodeFs } from "../../core/lazy-builtin.ts";

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
  /** In place of a file that is not on this machine: which one that is, only the library knows. */
  readonly #elsewhere = nodeCrypto().randomUUID();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const { inTransaction } = connection;
    if (typeof inTransaction?.() === "boolean") this.status = () => (inTransaction() ? "open" : "idle");
  }

  async ask(text: string, values: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows: unknown = await this.#connection.all(text, values);
    return Array.isArray(rows) ? Promise.all(rows.map((row) => this.#placed(row))) : [];
  }

  /** What a database says of itself, with the file that its path leads to. */
  async #placed(row: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    if (typeof row.file !== "string" || row.file === "") return row;
    const file = await nodeFs()
      .promises.stat(row.file, { bigint: true })
      .catch(() => undefined);
    const place = file === undefined ? this.#elsewhere : `${file.dev}:${file.ino}`;
    return { ...row, fingerprint: `${String(row.fingerprint)}\u001f${place}` };
  }

  /** Nothing is between it and the file: what it throws is what happened. */
  isRefusal(error: unknown): boolean {
    const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
    return !(typeof code === "string" && NO_REFUSAL.test(code));
  }
}
