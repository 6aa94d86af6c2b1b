// The state of a connection's transaction: which tables it wrote, and whether its reads may be cached.
import type { TransactionStatus } from "../../core/db-session.ts";
import type { SqlDialect } from "../sql/sql-tokens.ts";
import type { Statement } from "../sql/statement.ts";

/** The tables that were written. */
export class Writes {
  readonly tables: Set<string>;
  /** Tables that no statement named may have been written as well. */
  anything: boolean;

  constructor(tables: Iterable<string> = [], anything = false) {
    this.tables = new Set(tables);
    this.anything = anything;
  }

  get isEmpty(): boolean {
    return this.tables.size === 0 && !this.anything;
  }

  add(tables: Iterable<string>, anything: boolean): void {
    for (const table of tables) this.tables.add(table);
    this.anything ||= anything;
  }

  copy(): Writes {
    return new Writes(this.tables, this.anything);
  }
}

interface Savepoint {
  readonly name: string;
  readonly writes: Writes;
}

export class Transaction {
  readonly #dialect: SqlDialect;
  #writes = new Writes();
  #savepoints: Savepoint[] = [];
  #isOpen = false;
  /** SQLite: it began with a savepoint, whose release commits it. */
  #isOfSavepoint = false;
  /** A statement was refused, so the database will turn its commit into a rollback. */
  #isAborted = false;
  /** It began here, so everything it did is known. */
  #isKnown = false;
  /** SQLite may have ended it on its own, so each write may have been committed separately. */
  #mayHaveEnded = false;
  /** It has written or holds locks, so it may see more than the cache: its reads go to the database. */
  #readsDatabase = false;

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect;
  }

  /** As inferred from the statements; what the database reports takes precedence. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A statement was refused, so that nothing else is accepted before a rollback. */
  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** Whether reads may be cached while the database reports an open transaction. */
  get mayCache(): boolean {
    return this.#isKnown && !this.#readsDatabase;
  }

  /**
   * Records statements that were executed, with the command tags of the reply and the status before and after. Returns
   * what they committed.
   */
  executed(
    statements: readonly Statement[],
    commands: readonly string[],
    before: TransactionStatus,
    status: TransactionStatus | undefined,
  ): Writes {
    const committed = new Writes();
    // A transaction that began elsewhere stays unknown.
    if (before !== "idle") this.#isOpen = true;
    statements.forEach((statement, at) => {
      this.#record(statement, commands[at], committed);
    });
    const isOpen = status === undefined ? this.#isOpen : status !== "idle";
    if (isOpen) {
      this.#isOpen = true;
      if (this.#mayHaveEnded) this.#commit(committed);
    } else {
      this.#commit(committed);
      this.end();
    }
    return committed;
  }

  /** What these statements may write, plus what the transaction has written. */
  atStake(statements: readonly Statement[]): Writes {
    const writes = this.#writes.copy();
    for (const statement of statements) {
      if (statement.kind === "write") writes.add(statement.tables, statement.effects.anything);
    }
    return writes;
  }

  /** A statement failed in it: earlier writes may be undone, and its reads no longer come from the cache. */
  failed(statements: readonly Statement[]): void {
    this.#writes = this.atStake(statements);
    this.#isOpen = true;
    this.#readsDatabase = true;
  }

  /** Like `failed`, and it is unknown whether the transaction is still open. */
  outcomeUnknown(statements: readonly Statement[]): void {
    this.failed(statements);
    this.#mayHaveEnded = true;
  }

  /** A statement was refused: the transaction can only be rolled back, at least to a savepoint. */
  aborted(): void {
    this.failed([]);
    this.#isAborted = true;
  }

  /** The database has committed it. Returns what it has written. */
  committed(): Writes {
    const writes = this.#writes;
    this.end();
    return writes;
  }

  end(): void {
    this.#writes = new Writes();
    this.#savepoints = [];
    this.#isOpen = false;
    this.#isOfSavepoint = false;
    this.#isAborted = false;
    this.#isKnown = false;
    this.#mayHaveEnded = false;
    this.#readsDatabase = false;
  }

  #record(statement: Statement, command: string | undefined, committed: Writes): void {
    switch (statement.kind) {
      case "begin":
        // SQLite refuses a nested BEGIN; PostgreSQL only warns; MySQL commits.
        if (this.#dialect === "mysql" && this.#isOpen) {
          this.#commit(committed);
          this.end();
        }
        if (this.#mayHaveEnded) this.end();
        if (!this.#isOpen) this.#isKnown = true;
        this.#isOpen = true;
        return;
      case "commit":
        // COMMIT of a failed transaction rolls back; the command tag says so where the library exposes it.
        if (command === undefined ? !this.#isAborted : command !== "ROLLBACK") this.#commit(committed);
        this.end();
        return;
      case "rollback":
        this.end();
        return;
      case "savepoint":
        // Outside a transaction, MySQL does nothing.
        if (!this.#isOpen && this.#dialect === "mysql") return;
        if (!this.#isOpen) this.#isOfSavepoint = true;
        this.#isOpen = true;
        this.#savepoints.push({ name: statement.name, writes: this.#writes.copy() });
        return;
      case "rollback to":
        this.#isAborted = false;
        this.#leave(statement.kind, statement.name);
        return;
      case "release":
        this.#leave(statement.kind, statement.name);
        if (!this.#isOfSavepoint || this.#savepoints.length > 0) return;
        this.#commit(committed);
        this.end();
        return;
      case "write":
        this.#writes.add(statement.tables, statement.effects.anything);
        this.#readsDatabase = true;
        // PostgreSQL runs several statements of one text as one transaction, the others each on its own.
        if (this.#dialect !== "postgres" && !this.#isOpen) this.#commit(committed);
        // It may also not have committed, so that the writes stay what the end of the transaction is about.
        if (statement.effects.commits) this.#commit(committed);
        return;
      case "harmless":
        if (statement.effects.locks !== undefined) this.#readsDatabase = true;
        if (statement.effects.commits) this.#commit(committed);
    }
  }

  #commit(committed: Writes): void {
    committed.add(this.#writes.tables, this.#writes.anything);
  }

  #leave(how: "rollback to" | "release", name: string): void {
    const at = this.#savepoints.findLastIndex((savepoint) => savepoint.name === name);
    const savepoint = this.#savepoints[at];
    if (savepoint === undefined) return;
    if (how === "release") {
      this.#savepoints.length = at;
    } else {
      this.#savepoints.length = at + 1;
      this.#writes = savepoint.writes.copy();
    }
  }
}
