// What is known about a connection across its users: statement order, transaction and session settings.
import type { BypassListener, ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import { type Statement, statementsIn } from "../sql/statement.ts";
import { querySettings, type Settings } from "./settings.ts";
import { Transaction, Writes } from "./transaction.ts";

/** Delivers what was committed. Never rejects. */
export type CommitListener = (writes: Writes) => Promise<void>;

export class ConnectionState {
  readonly driver: ConnectionDriver;
  readonly transaction: Transaction;
  #tail: Promise<unknown> | undefined;
  #settings: Settings | undefined;
  /** The fingerprint from before any change was seen. */
  #original: string | undefined;
  #changes = 0;
  #queries = 0;
  #refusesQueries = false;
  /** The settings query has worked once: inside a transaction a refused one would abort it. */
  #canQuerySettings = false;
  #holdsLock = false;
  #wasOpenWithOtherSettings = false;
  /** Those who have used the present transaction. */
  readonly #users = new Set<CommitListener>();
  #delivery: Promise<unknown> = Promise.resolve();

  constructor(driver: ConnectionDriver) {
    this.driver = driver;
    this.transaction = new Transaction(driver.dialect);
    // The code that began the transaction may end it without the tracker.
    driver.onCommit?.(() => this.#deliver(this.transaction.committed()));
    driver.onBypass?.(this.#bypassed);
    if (driver.hasTransaction === true) this.transaction.executed([], [], "open", undefined);
  }

  /** Resolves when everybody knows what the latest commit has written. */
  get delivery(): Promise<unknown> {
    return this.#delivery;
  }

  /** Calls `user` with what the transaction has written when the database reports its commit. */
  usedBy(user: CommitListener): void {
    if (this.status === "idle") this.#users.clear();
    this.#users.add(user);
  }

  #deliver(writes: Writes): void {
    const users = [...this.#users];
    if (!this.transaction.isOpen) this.#users.clear();
    if (!writes.isEmpty) this.#delivery = Promise.all(users.map((user) => user(writes)));
  }

  readonly #bypassed: BypassListener = async (text, failure) => {
    const { driver, transaction } = this;
    const statements = statementsIn(text, driver.dialect);
    const committed =
      failure === undefined
        ? transaction.executed(statements, [], "idle", driver.status?.())
        : this.#failedPast(statements, failure.error);
    this.noteEffects(statements);
    this.#deliver(committed);
    await this.#delivery;
  };

  /** Returns what may have been committed. */
  #failedPast(statements: readonly Statement[], error: unknown): Writes {
    const { driver, transaction } = this;
    const atStake = transaction.atStake(statements);
    const hasCommit = statements.some(({ kind }) => kind === "commit");
    const isRefusal = driver.isRefusal(error);
    if (driver.dialect === "sqlite") {
      if (driver.status === undefined) transaction.outcomeUnknown(statements);
      else if (this.status === "idle") transaction.end();
    } else if (hasCommit) transaction.end();
    else if (transaction.isOpen && isRefusal) transaction.aborted();
    const isKnown = isRefusal && !(hasCommit && statements.length > 1);
    return isKnown || (transaction.isOpen && !hasCommit) ? new Writes() : atStake;
  }

  get status(): TransactionStatus {
    return this.driver.status?.() ?? (this.transaction.isOpen ? "open" : "idle");
  }

  get isUsable(): boolean {
    return this.driver.isUsable?.() ?? true;
  }

  /** It holds a lock that outlives its transaction. */
  get holdsLock(): boolean {
    return this.#holdsLock;
  }

  /** Incremented whenever the settings may have changed. */
  get changes(): number {
    return this.#changes;
  }

  /** How often the settings were queried. */
  get queries(): number {
    return this.#queries;
  }

  /** Runs statements in order: starts at once when the connection is idle, else after the previous one was answered. */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#tail === undefined ? work() : this.#tail.then(work);
    const over = () => {
      if (this.#tail === tail) this.#tail = undefined;
    };
    const tail: Promise<unknown> = result.then(over, async () => {
      await this.driver.answered?.();
      over();
    });
    this.#tail = tail;
    return result;
  }

  /** The connection passes to another user; what happened to it in between is unknown. */
  handOut(): void {
    this.#settings = undefined;
  }

  settingsChanged(): void {
    this.#changes++;
    this.#settings = undefined;
  }

  /** The settings, if they are known and no change to them was seen. */
  get originalSettings(): Settings | undefined {
    return this.#settings?.fingerprint === this.#original ? this.#settings : undefined;
  }

  /** undefined: the database does not answer. `refresh`: query again, even if they are known. */
  async settings(tables: readonly string[], refresh: boolean): Promise<Settings | undefined> {
    const known = this.#settings;
    if (!refresh && known !== undefined && tables.every((table) => known.checkedTables.has(table)))
      return known;
    if (this.#refusesQueries || (this.status !== "idle" && !this.#canQuerySettings)) return undefined;
    const changes = this.#changes;
    this.#queries++;
    try {
      const settings = await querySettings(this.driver, [
        ...new Set([...(known?.checkedTables ?? []), ...tables]),
      ]);
      this.#canQuerySettings = true;
      if (this.#changes === 0) this.#original = settings.fingerprint;
      if (changes === this.#changes) this.#settings = settings;
      return settings;
    } catch (error) {
      if (this.driver.isRefusal(error)) this.#refusesQueries = true;
      return undefined;
    }
  }

  /** Tries the settings query outside a transaction, so that it is safe inside one. */
  async probeSettings(): Promise<void> {
    if (!this.#canQuerySettings) await this.settings([], false);
  }

  /** Records what statements did besides reading and writing; call it after the transaction was updated. */
  noteEffects(statements: readonly Statement[]): void {
    for (const statement of statements) {
      const effects =
        statement.kind === "write" || statement.kind === "harmless" ? statement.effects : undefined;
      const hasOther = effects?.settings === true || (statement.kind === "begin" && !statement.isPlain);
      if (hasOther) this.settingsChanged();
      if (hasOther && this.status !== "idle") this.#wasOpenWithOtherSettings = true;
      if (effects?.locks === "session") this.#holdsLock = true;
    }
    // Settings made in a transaction may be undone when it ends or rolls back to a savepoint.
    const isOver = this.status === "idle";
    if (this.#wasOpenWithOtherSettings && (isOver || statements.some(({ kind }) => kind === "rollback to"))) {
      this.#wasOpenWithOtherSettings = !isOver;
      this.settingsChanged();
    }
  }

  /**
   * Whether a SQLite transaction is still open after an error, since some errors end it. Where the library does not say,
   * BEGIN tells: SQLite refuses it inside a transaction. undefined: unknown.
   */
  async isOpenAfterRefusal(): Promise<boolean | undefined> {
    if (this.driver.status !== undefined) return this.status !== "idle";
    try {
      await this.driver.query("BEGIN", []);
    } catch (error) {
      return String(error).includes("within a transaction") ? true : undefined;
    }
    await this.driver.query("ROLLBACK", []).catch(() => {});
    return false;
  }
}
