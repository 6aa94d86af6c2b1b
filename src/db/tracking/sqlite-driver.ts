// The tracker's view of a SQLite connection, for every library.
import type { ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import { nodeCrypto, nodeFs, nodeOs } from "../../core/lazy-builtin.ts";

/** Errors of the file itself, after which it is unknown what was written. */
const NO_REFUSAL = /^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL)/;

export interface SqliteConnection {
  all(text: string, values: readonly string[]): Promise<unknown>;
  /** Absent: the library does not expose it. */
  readonly inTransaction?: (() => unknown) | undefined;
}

export class SqliteDriver implements ConnectionDriver {
  readonly dialect = "sqlite";
  /** The path comes from the database; the host name is added because another machine may have another file there. */
  readonly database = nodeOs().hostname();
  readonly status?: () => TransactionStatus | undefined;
  readonly #connection: SqliteConnection;
  /** Stands for a file that is not on this machine: only the library knows which one it is. */
  readonly #remoteIdentity = nodeCrypto().randomUUID();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const { inTransaction } = connection;
    if (typeof inTransaction?.() === "boolean") this.status = () => (inTransaction() ? "open" : "idle");
  }

  async query(
    text: string,
    values: readonly string[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const rows: unknown = await this.#connection.all(text, values);
    return Array.isArray(rows) ? Promise.all(rows.map((row) => this.#withFileIdentity(row))) : [];
  }

  /** Adds the identity of the file that the reported path leads to. */
  async #withFileIdentity(
    row: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, unknown>>> {
    if (typeof row.file !== "string" || row.file === "") return row;
    const file = await nodeFs()
      .promises.stat(row.file, { bigint: true })
      .catch(() => undefined);
    const place = file === undefined ? this.#remoteIdentity : `${file.dev}:${file.ino}`;
    return { ...row, fingerprint: `${String(row.fingerprint)}\u001f${place}` };
  }

  /** No network lies between the library and the file, so nearly every error is SQLite's own refusal. */
  isRefusal(error: unknown): boolean {
    const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
    return !(typeof code === "string" && NO_REFUSAL.test(code));
  }
}
