// What is known of a connection, whoever uses it: the order of its statements, its transaction and its settings.
import type { ConnectionDriver, TransactionStatus } from "../../core/db-session.ts";
import type { Statement } from "../sql/statement.ts";
import { askSettings, type Settings } from "./settings.ts";
import { Transaction } from "./transaction.ts";

export class ConnectionState {
  readonly driver: ConnectionDriver;
  readonly transaction: Transaction;
  #tail: Promise<unknown> | undefined;
  #settings: Settings | undefined;
  /** The fingerprint it had before anything was seen to change it. */
  #original: string | undefined;
  #changes = 0;
  #questions = 0;
  #refusesQuestions = false;
  /** It has answered the question about settings: in a transaction, one that is refused would do harm. */
  #isAcquainted = false;
  #holdsLock = false;
  #wasOpenWithOtherSettings = false;

  constructor(driver: ConnectionDriver) {
    this.driver = driver;
    this.transaction = new Transaction(driver.dialect);
  }

  get status(): TransactionStatus {
    return this.driver.status?.() ?? (this.transaction.isOpen ? "open" : "idle");
  }

  get isUsable(): boolean {
    return this.driver.isUsable?.() ?? true;
  }

  /** It holds a lock that no end of a transaction frees. */
  get holdsLock(): boolean {
    return this.#holdsLock;
  }

  /** Grows whenever the settings may have been changed. */
  get changes(): number {
    return this.#changes;
  }

  /** How often the settings were asked for. */
  get questions(): number {
    return this.#questions;
  }

  /** Begins at once when nothing is under way, else when that is over and answered. */
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

  /** It passes to another user: what was done with it in between is not known. */
  handOut(): void {
    this.#settings = undefined;
  }

  settingsChanged(): void {
    this.#changes++;
    this.#settings = undefined;
  }

  /** The settings, if they are known and those that it was made with, as far as was seen. */
  get originalSettings(): Settings | undefined {
    return this.#settings?.fingerprint === this.#original ? this.#settings : undefined;
  }

  /** undefined: the database does not tell. */
  async settings(tables: readonly string[], anew: boolean): Promise<Settings | undefined> {
    const known = this.#settings;
    if (!anew && known !== undefined && tables.every((table) => known.askedTables.has(table))) return known;
    if (this.#refusesQuestions || (this.status !== "idle" && !this.#isAcquainted)) return undefined;
    const changes = this.#changes;
    this.#questions++;
    try {
      const settings = await askSettings(this.driver, [
        ...new Set([...(known?.askedTables ?? []), ...tables]),
      ]);
      this.#isAcquainted = true;
      if (this.#changes === 0) this.#original = settings.fingerprint;
      if (changes === this.#changes) this.#settings = settings;
      return settings;
    } catch (error) {
      if (this.driver.isRefusal(error)) this.#refusesQuestions = true;
      return undefined;
    }
  }

  /** Finds out outside of a transaction whether the database answers, so that it can be asked within one. */
  async makeAcquaintance(): Promise<void> {
    if (!this.#isAcquainted) await this.settings([], false);
  }

  /** Takes note of what statements did besides reading and writing, after the transaction has. */
  noteEffects(statements: readonly Statement[]): void {
    for (const statement of statements) {
      const effects =
        statement.kind === "write" || statement.kind === "harmless" ? statement.effects : undefined;
      const hasOther = effects?.settings === true || (statement.kind === "begin" && !statement.isPlain);
      if (hasOther) this.settingsChanged();
      if (hasOther && this.status !== "idle") this.#wasOpenWithOtherSettings = true;
      if (effects?.locks === "session") this.#holdsLock = true;
    }
    // What was set in a transaction may be undone at its end, and by going back in it.
    const isOver = this.status === "idle";
    if (this.#wasOpenWithOtherSettings && (isOver || statements.some(({ kind }) => kind === "rollback to"))) {
      this.#wasOpenWithOtherSettings = !isOver;
      this.settingsChanged();
    }
  }

  /**
   * Whether a transaction of SQLite is open, which some refusals end. Where the library hides that, another one is
   * begun: SQLite refuses that within one. undefined: it cannot be found out.
   */
  async isOpenAfterRefusal(): Promise<boolean | undefined> {
    if (this.driver.status !== undefined) return this.status !== "idle";
    try {
      await this.driver.ask("BEGIN", []);
    } catch (error) {
      return String(error).includes("within a transaction") ? true : undefined;
    }
    await this.driver.ask("ROLLBACK", []).catch(() => {});
    return false;
  }
}
