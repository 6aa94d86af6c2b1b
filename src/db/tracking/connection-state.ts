// What is known about a connection across its users: statement order, transaction and session settings.
import type { BypassListener, ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import { LazyModule } from "../../core/lazy-module.ts";
import type { Call } from "../sql/sql-functions.ts";
import type { Statement } from "../sql/statement.ts";
import type { Catalogue } from "./catalogue.ts";
import { combined, covers, type Names, type Settings } from "./settings.ts";
import { Transaction, Writes } from "./transaction.ts";

/** Delivers what was committed, or what is about to be known of it. Never rejects. */
export type CommitListener = (writes: Writes | Promise<Writes>) => Promise<void>;

/** Loaded with the first question: most programs that use a cache have no database session. */
let questions: Promise<typeof import("./settings-query.ts")> | undefined;

const NO_NAMES: Names = { tables: [], functions: [] };

/** Whether a statement may commit the transaction that it is in, even if it fails. */
export const mayCommit = (statement: Statement): boolean =>
  "effects" in statement && statement.effects.commits === true;

export class ConnectionState {
  readonly driver: ConnectionDriver;
  readonly transaction: Transaction;
  #tail: Promise<unknown> | undefined;
  #settings: Settings | undefined;
  #catalogue: Catalogue | undefined;
  /** The fingerprint from before any change by a statement of its users. */
  #original: string | undefined;
  #wasChangedHere = false;
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
  /** The statement under way commits, and what it commits is delivered when it has returned. */
  commitsItself = false;

  constructor(driver: ConnectionDriver) {
    this.driver = driver;
    this.transaction = new Transaction(driver.dialect);
    // The code that began the transaction may end it without the tracker.
    driver.onCommit?.(() => {
      if (!this.commitsItself) this.#deliver(this.transaction.committed());
    });
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
    if (writes.isEmpty) return;
    const touched = this.#touchedWhenAnswered(writes);
    this.#delivery = Promise.all(users.map((user) => user(touched)));
  }

  /** The database may not have finished its answer to the commit. */
  async #touchedWhenAnswered(writes: Writes): Promise<Writes> {
    await this.driver.answered?.();
    return this.touchedBy(writes);
  }

  readonly #bypassed: BypassListener = (text, failure) =>
    sqlCode.isReady ? this.#noteBypass(text, failure) : sqlCode.call(() => this.#noteBypass(text, failure));

  async #noteBypass(...[text, failure]: Parameters<BypassListener>): Promise<void> {
    const { driver, transaction } = this;
    const statements = sql()
      .statementsIn(text, driver.dialect)
      .map((statement) => this.settledAsKnown(statement));
    const committed =
      failure === undefined
        ? transaction.executed(statements, [], "idle", driver.status?.())
        : this.#failedPast(statements, failure.error);
    this.noteEffects(statements);
    this.#deliver(committed);
    await this.#delivery;
  }

  /** Returns what may have been committed. */
  #failedPast(statements: readonly Statement[], error: unknown): Writes {
    const { driver, transaction } = this;
    const atStake = transaction.atStake(statements);
    const hasCommit = statements.some(({ kind }) => kind === "commit");
    const isRefusal = driver.isRefusal(error);
    if (driver.dialect === "mysql") {
      if (hasCommit) transaction.end();
      else if (transaction.isOpen) transaction.failed(statements);
      const mayBePartial = statements.length > 1 || statements.some(mayCommit);
      if (isRefusal) return mayBePartial ? atStake : new Writes();
    } else if (driver.dialect === "sqlite") {
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
  async settings(names: Names, refresh: boolean): Promise<Settings | undefined> {
    const known = this.#settings;
    if (!refresh && known !== undefined && covers(known, names)) return known;
    if (!this.#mayQuery) return undefined;
    const changes = this.#changes;
    this.#queries++;
    try {
      questions ??= import("./settings-query.ts");
      const asked = await (await questions).querySettings(this.driver, names, this.#catalogue);
      const settings = known?.fingerprint === asked.fingerprint ? combined(known, asked) : asked;
      this.#catalogue = settings.catalogue;
      this.#canQuerySettings = true;
      // What a pool's hook for new connections has sent was answered before this question.
      const isFirst = this.#original === undefined && !this.#wasChangedHere;
      if (isFirst || this.#changes === 0) this.#original = settings.fingerprint;
      if (isFirst || changes === this.#changes) this.#settings = settings;
      return settings;
    } catch (error) {
      if (this.driver.isRefusal(error)) this.#refusesQueries = true;
      return undefined;
    }
  }

  /** Tries the settings query outside a transaction, so that it is safe inside one. */
  async probeSettings(): Promise<void> {
    if (!this.#canQuerySettings) await this.settings(NO_NAMES, false);
  }

  get #mayQuery(): boolean {
    if (this.#refusesQueries || !this.isUsable) return false;
    const { status } = this;
    // In MySQL a question may take the snapshot of a transaction, or begin one.
    if (this.driver.dialect === "mysql") return status === "idle";
    return status === "idle" || (status === "open" && this.#canQuerySettings && !this.transaction.isAborted);
  }

  /** The statements with what their calls add to them. A function that the catalogue cannot be asked about may do anything. */
  async settled(statements: readonly Statement[]): Promise<readonly Statement[]> {
    const calls = statements.flatMap((statement) => sql().callsOf(statement));
    if (calls.length === 0) return statements;
    if (!calls.every((call) => this.#isLasting(call))) {
      const functions = [...new Set(calls.map(({ name }) => name))];
      await this.settings({ tables: [], functions }, true);
    }
    return statements.map((statement) => this.settledAsKnown(statement));
  }

  /** Whether what is known of a function still holds: a stamp tells when one is created, but not when it is redefined. */
  #isLasting({ name, kind }: Call): boolean {
    const trust = this.#catalogue?.trustOf(name);
    // No stamp tells when a function of MySQL was changed.
    if (trust === undefined || this.driver.dialect === "mysql") return false;
    return kind !== "unknown" || (trust !== "immutable" && trust !== "stable");
  }

  /** Whether the catalogue says that a function that it calls may write. */
  isKnownToWrite(statement: Statement): boolean {
    const isAsked = sql()
      .callsOf(statement)
      .every(({ name }) => this.#catalogue?.trustOf(name) !== undefined);
    return isAsked && this.settledAsKnown(statement).kind === "write";
  }

  /** Like `settled`, without a question. */
  settledAsKnown(statement: Statement): Statement {
    if (this.#refusesQueries) return sql().settled(statement);
    return sql().settled(statement, (name) => this.#catalogue?.trustOf(name) ?? "own");
  }

  /** What was written with everything that was written along. */
  async touchedBy(written: Writes): Promise<Writes> {
    if (written.tables.size === 0) return written;
    if (this.#refusesQueries) return this.#withoutCatalogue(written);
    if (!this.#mayQuery) return this.touchedBefore(written);
    if (this.#catalogue === undefined) await this.settings(NO_NAMES, false);
    return this.#catalogue?.touchedBy(this.driver, written) ?? written;
  }

  /** As far as it is known without a question. */
  touchedBefore(written: Writes): Writes {
    if (written.isEmpty) return written;
    if (this.#refusesQueries) return this.#withoutCatalogue(written);
    const touched = this.#catalogue?.touchedBefore(written);
    const writes = written.copy();
    writes.add(touched?.tables ?? [], touched?.anything ?? true);
    return writes;
  }

  /** A substitute for PostgreSQL or SQLite may have no catalogue; a server of MySQL that refuses the question is too old. */
  #withoutCatalogue(written: Writes): Writes {
    return this.driver.dialect === "mysql" ? new Writes(written.tables, true) : written;
  }

  /** Records what statements did besides reading and writing; call it after the transaction was updated. */
  noteEffects(statements: readonly Statement[]): void {
    for (const statement of statements) {
      const effects =
        statement.kind === "write" || statement.kind === "harmless" ? statement.effects : undefined;
      const hasOther = effects?.settings === true || (statement.kind === "begin" && !statement.isPlain);
      if (hasOther) {
        this.#wasChangedHere = true;
        this.settingsChanged();
      }
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

type SqlCode = typeof import("../sql/settled-statement.ts");

export const sqlCode = new LazyModule<SqlCode>(() => import("../sql/settled-statement.ts"));

/** Only for what runs after a statement has begun: then it is loaded. */
export const sql = (): SqlCode => sqlCode.loaded as SqlCode;
