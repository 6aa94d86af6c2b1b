// The tracker's view of a node-postgres connection, from the messages that the server sends.
import type { ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import type { PgClient, QueryResult } from "./library.ts";

const STATUSES: Readonly<Record<string, TransactionStatus>> = { I: "idle", T: "open", E: "failed" };

/** Command tags after which session settings may have changed; seen even for statements that bypass the tracker. */
const CHANGES_SETTINGS = /^(SET|RESET|DISCARD|DO|CALL|CREATE|ALTER)\b/;

/** Errors sent while the server closes the connection, or about an outcome it does not know. */
const NO_REFUSAL = /^(08...|40003|57P..|25P0[34]|58...)$/;

export class PgDriver implements ConnectionDriver {
  readonly dialect = "postgres";
  readonly database: string;
  readonly #client: PgClient;
  #status: TransactionStatus | undefined;
  #isLost = false;
  #committed: () => void = () => {};
  #waiting: ((isAnswered: boolean) => void)[] = [];

  constructor(client: PgClient, settingsChanged: () => void) {
    this.#client = client;
    this.database = `${client.host}:${client.port}/${client.database}`;
    this.#status = STATUSES[client.getTransactionStatus?.() ?? ""];
    const { connection } = client;
    // Before the client's own listeners, which run the callbacks of the query.
    connection?.prependListener("readyForQuery", ({ status }: { readonly status?: string }) => {
      this.#status = STATUSES[status ?? ""];
      this.#wake(true);
    });
    connection?.prependListener("commandComplete", ({ text }: { readonly text?: string }) => {
      if (text === "COMMIT") this.#committed();
      if (CHANGES_SETTINGS.test(text ?? "")) settingsChanged();
    });
    connection?.prependListener("end", () => {
      this.#isLost = true;
      this.#wake(false);
    });
  }

  async query(
    text: string,
    values: readonly string[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const result = (await this.#client.query({ text, values })) as QueryResult;
    return result.rows as Readonly<Record<string, unknown>>[];
  }

  onCommit(listener: () => void): void {
    this.#committed = listener;
  }

  status(): TransactionStatus | undefined {
    return this.#status;
  }

  isUsable(): boolean {
    const { _queryable, _ending, _ended } = this.#client;
    return !this.#isLost && _queryable !== false && _ending !== true && _ended !== true;
  }

  isRefusal(error: unknown): boolean {
    return isServerRefusal(error);
  }

  answered(): Promise<boolean> {
    if (!this.isUsable()) return Promise.resolve(false);
    // Also when the client itself refused the query and sent nothing.
    if (this.#client.readyForQuery !== false) return Promise.resolve(true);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #wake(isAnswered: boolean): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve(isAnswered);
  }
}

/** Whether the server refused the statement and the connection is still usable. */
export function isServerRefusal(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // System errors have a code too, but no severity.
  if (typeof code !== "string" || typeof severity !== "string") return false;
  return severity !== "FATAL" && severity !== "PANIC" && !NO_REFUSAL.test(code);
}
