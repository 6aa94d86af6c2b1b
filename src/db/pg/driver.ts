// A connection of node-postgres as the tracker sees it: what the server says of it, whoever it says that to.
import type { ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import type { PgClient, QueryResult } from "./library.ts";

const STATUSES: Readonly<Record<string, TransactionStatus>> = { I: "idle", T: "open", E: "failed" };

/** Commands after which the settings of a session may be others. Seen also when they come past the session. */
const CHANGES_SETTINGS = /^(SET|RESET|DISCARD|DO|CALL|CREATE|ALTER)\b/;

/** Errors that a server sends while it ends the connection, or about an outcome that it does not know. */
const NO_REFUSAL = /^(08...|40003|57P..|25P0[34]|58...)$/;

export class PgDriver implements ConnectionDriver {
  readonly dialect = "postgres";
  readonly database: string;
  readonly #client: PgClient;
  #status: TransactionStatus | undefined;
  #isLost = false;
  #waiting: ((isAnswered: boolean) => void)[] = [];

  constructor(client: PgClient, settingsChanged: () => void) {
    this.#client = client;
    this.database = `${client.host}:${client.port}/${client.database}`;
    this.#status = STATUSES[client.getTransactionStatus?.() ?? ""];
    const { connection } = client;
    // Before the client's own listeners, which call back whoever waits for the answer.
    connection?.prependListener("readyForQuery", ({ status }: { readonly status?: string }) => {
      this.#status = STATUSES[status ?? ""];
      this.#wake(true);
    });
    connection?.prependListener("commandComplete", ({ text }: { readonly text?: string }) => {
      if (CHANGES_SETTINGS.test(text ?? "")) settingsChanged();
    });
    connection?.prependListener("end", () => {
      this.#isLost = true;
      this.#wake(false);
    });
  }

  async ask(text: string, values: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const result = (await this.#client.query({ text, values })) as QueryResult;
    return result.rows as Readonly<Record<string, unknown>>[];
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
    // Also where it never was sent, since the client itself refused it.
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

/** Whether the server itself refused a statement, and the connection lives on. */
export function isServerRefusal(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  // An error of the system has a code as well, but no severity.
  if (typeof code !== "string" || typeof severity !== "string") return false;
  return severity !== "FATAL" && severity !== "PANIC" && !NO_REFUSAL.test(code);
}
