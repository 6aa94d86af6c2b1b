// What the transaction of a connection has done so far: which tables it wrote, and whether its reads may be cached.
import type { TransactionStatus } from "../../core/db-session.ts";
import type { SqlDialect } from "../sql/sql-tokens.ts";
import type { Statement } from "../sql/statement.ts";

/** Tables that were written. */
export class Writes {
  readonly tables: Set<string>;
  /** Also tables that nobody named. */
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
  /** SQLite: begun by a savepoint, whose release commits it. */
  #isOfSavepoint = false;
  /** The database has refused a statement of it and will answer its commit with a rollback. */
  #isAborted = false;
  /** It was begun here, so that everything it did is known. */
  #isKnown = false;
  /** SQLite may have ended it by itself, so that each write may be committed on its own. */
  #isDoubtful = false;
  /** It has written, or holds locks: it may know more than others were told, so its reads go to the database. */
  #readsDatabase = false;

  constructor(dialect: SqlDialect) {
    this.#dialect = dialect;
  }

  /** As concluded from the statements; what the database says counts more. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether reads may be cached while the database says that a transaction is open. */
  get mayCache(): boolean {
    return this.#isKnown && !this.#readsDatabase;
  }

  /**
   * Takes note of statements that were carried out, with the commands that the database answered and the state
   * before and after them. Returns what has been committed by them.
   */
  carriedOut(
    statements: readonly Statement[],
    commands: readonly string[],
    before: TransactionStatus,
    status: TransactionStatus | undefined,
  ): Writes {
    const committed = new Writes();
    // One that was begun elsewhere stays unknown, whatever is said here.
    if (before !== "idle") this.#isOpen = true;
    statements.forEach((statement, at) => {
      this.#note(statement, commands[at], committed);
    });
    const isOpen = status === undefined ? this.#isOpen : status !== "idle";
    if (isOpen) {
      this.#isOpen = true;
      if (this.#isDoubtful) this.#commit(committed);
    } else {
      this.#commit(committed);
      this.end();
    }
    return committed;
  }

  /** What these statements may write, together with what the transaction has written. */
  atStake(statements: readonly Statement[]): Writes {
    const writes = this.#writes.copy();
    for (const statement of statements) {
      if (statement.kind === "write") writes.add(statement.tables, statement.effects.anything);
    }
    return writes;
  }

  /** A statement failed in it: what it did before may count for nothing, and nothing it is told is sure. */
  failed(statements: readonly Statement[]): void {
    this.#writes = this.atStake(statements);
    this.#isOpen = true;
    this.#readsDatabase = true;
  }

  /** As `failed`, and whether it is still open is not known. */
  doubted(statements: readonly Statement[]): void {
    this.failed(statements);
    this.#isDoubtful = true;
  }

  /** A statement was refused, so that only rolling back, to a savepoint at least, is left. */
  aborted(): void {
    this.failed([]);
    this.#isAborted = true;
  }

  end(): void {
    this.#writes = new Writes();
    this.#savepoints = [];
    this.#isOpen = false;
    this.#isOfSavepoint = false;
    this.#isAborted = false;
    this.#isKnown = false;
    this.#isDoubtful = false;
    this.#readsDatabase = false;
  }

  #note(statement: Statement, command: string | undefined, committed: Writes): void {
    switch (statement.kind) {
      case "begin":
        // SQLite would have refused a second one; elsewhere it is only a warning.
        if (this.#isDoubtful) this.end();
        if (!this.#isOpen) this.#isKnown = true;
        this.#isOpen = true;
        return;
      case "commit":
        // A transaction that had failed is rolled back, and the answer says so where the library passes it on.
        if (command === undefined ? !this.#isAborted : command !== "ROLLBACK") this.#commit(committed);
        this.end();
        return;
      case "rollback":
        this.end();
        return;
      case "savepoint":
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
        // Of several statements in one text, PostgreSQL makes one transaction and SQLite as many.
        if (this.#dialect === "sqlite" && !this.#isOpen) this.#commit(committed);
        return;
      case "harmless":
        if (statement.effects.locks !== undefined) this.#readsDatabase = true;
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
