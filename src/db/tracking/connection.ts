// One connection of a database: its statements in order, what its transaction does, and which of its reads are cached.
import type { SessionStatement, TrackedConnection, TransactionStatus } from "../../core/db-session.ts";
import { type Statement, statementsIn } from "../sql/statement.ts";
import type { CachedTables } from "./cached-tables.ts";
import type { ConnectionState } from "./connection-state.ts";
import type { Invalidations } from "./invalidation.ts";
import type { Fetched, ReadCache } from "./read-cache.ts";
import { areShareable, type Settings } from "./settings.ts";

/** For whom a connection is watched. */
export interface Watcher {
  readonly tables: CachedTables;
  readonly reads: ReadCache;
  readonly invalidations: Invalidations;
}

export class WatchedConnection implements TrackedConnection {
  readonly state: ConnectionState;
  readonly #watcher: Watcher;

  constructor(state: ConnectionState, watcher: Watcher) {
    this.state = state;
    this.#watcher = watcher;
  }

  settingsChanged(): void {
    this.state.settingsChanged();
  }

  run<Result>(statement: SessionStatement<Result>): Promise<Result> {
    const statements = statementsIn(statement.text, this.state.driver.dialect);
    return this.state.inTurn(() => this.#run(statement, statements));
  }

  /**
   * Fetches a read whose result is to be stored under `settings`, after asking whether they are still those of this
   * connection: they may have been changed where nobody watched.
   */
  fetch<Result>(
    statement: SessionStatement<Result>,
    settings: Settings,
    tables: readonly string[],
  ): Promise<Fetched> {
    return this.state.inTurn(() => this.#fetch(statement, settings, tables, true));
  }

  async #run<Result>(statement: SessionStatement<Result>, statements: readonly Statement[]): Promise<Result> {
    const { reads } = this.#watcher;
    const read = reads.readOf(statement, statement.keeping?.restore, statements);
    if (read === undefined) return this.#execute(statement, statements);
    const questions = this.state.questions;
    const settings = await this.#eligible(read.tables, false);
    if (settings === undefined) return this.#execute(statement, statements);
    const isFresh = questions !== this.state.questions;
    const answer = await reads.whileHolding(read, settings, () =>
      this.#fetch(statement, settings, read.tables, !isFresh),
    );
    return answer === undefined ? this.#execute(statement, statements) : answer.result;
  }

  async #fetch<Result>(
    { keeping, execute }: SessionStatement<Result>,
    settings: Settings,
    tables: readonly string[],
    asks: boolean,
  ): Promise<Fetched> {
    const changes = this.state.changes;
    const present = asks ? await this.#eligible(tables, true) : settings;
    const wasUsable = this.state.isUsable;
    const wasOpen = this.state.status !== "idle";
    try {
      const data = await (keeping === undefined ? execute() : keeping.fetch());
      const isSame = present?.fingerprint === settings.fingerprint && changes === this.state.changes;
      return { data, isShareable: isSame && keeping?.isKeepable?.(data) !== false };
    } catch (error) {
      await this.#failed([], error, wasUsable, wasOpen);
      throw error;
    }
  }

  /** The settings, when reads of these tables over this connection may be cached now. `anew`: whatever is known. */
  async #eligible(tables: readonly string[], anew: boolean): Promise<Settings | undefined> {
    const { state } = this;
    if (!this.#mayCache(state.status)) return undefined;
    const settings = await state.settings(tables, anew);
    if (settings === undefined || !areShareable(settings, tables)) return undefined;
    // The answer may have told of a transaction that was not begun here.
    const { status } = state;
    return status === "idle" || (settings.readsCommitted && this.#mayCache(status)) ? settings : undefined;
  }

  #mayCache(status: TransactionStatus): boolean {
    const { holdsLock, transaction } = this.state;
    return !holdsLock && (status === "idle" || (status === "open" && transaction.mayCache));
  }

  async #execute<Result>(
    statement: SessionStatement<Result>,
    statements: readonly Statement[],
  ): Promise<Result> {
    const { state } = this;
    const { driver, transaction } = state;
    if (statements[0]?.kind === "begin" && state.status === "idle") await state.makeAcquaintance();
    const wasUsable = state.isUsable;
    const before = state.status;
    const wasOpen = before !== "idle";
    let result: Result;
    try {
      result = await statement.execute();
    } catch (error) {
      await this.#failed(statements, error, wasUsable, wasOpen);
      throw error;
    }
    const committed = transaction.carriedOut(
      statements,
      statement.commands?.(result) ?? [],
      before,
      driver.status?.(),
    );
    state.noteEffects(statements);
    await this.#watcher.invalidations.deliver(this.#watcher.tables.tagsOf(committed));
    return result;
  }

  async #failed(
    statements: readonly Statement[],
    error: unknown,
    wasUsable: boolean,
    wasOpen: boolean,
  ): Promise<void> {
    const { state } = this;
    const { driver, transaction } = state;
    state.noteEffects(statements);
    if (!wasUsable) return;
    const { invalidations, tables } = this.#watcher;
    const mayHaveCommitted = statements.some(({ kind }) => kind === "commit");
    const atStake = tables.tagsOf(transaction.atStake(statements));
    const isSqlite = driver.dialect === "sqlite";
    if (driver.isRefusal(error)) {
      // Of several statements, those before the refused one may have been committed: by one of them, or in SQLite each.
      const isAutomatic = isSqlite && !wasOpen;
      if (statements.length > 1 && (mayHaveCommitted || isAutomatic)) await invalidations.deliver(atStake);
      if (isSqlite) await this.#refusedBySqlite(statements, wasOpen);
      else if (mayHaveCommitted || statements.some(({ kind }) => kind === "rollback")) transaction.end();
      else if (wasOpen) transaction.aborted();
    } else if (mayHaveCommitted || !wasOpen) {
      transaction.end();
      await invalidations.deliverUnknown(atStake, driver.answered?.());
    } else if (isSqlite) {
      transaction.doubted(statements);
    } else {
      transaction.failed(statements);
    }
  }

  /** It keeps a transaction whose commit had to wait for others, and ends some when a statement is refused. */
  async #refusedBySqlite(statements: readonly Statement[], wasOpen: boolean): Promise<void> {
    const mayBegin = statements.some(({ kind }) => kind === "begin" || kind === "savepoint");
    if (!wasOpen && !mayBegin) return;
    const { transaction } = this.state;
    const isOpen = await this.state.isOpenAfterRefusal();
    const carriedOut = statements.slice(0, -1);
    // What it refuses to roll back is none.
    const isNone = isOpen === undefined && statements.some(({ kind }) => kind === "rollback");
    if (isOpen === false || isNone) transaction.end();
    else if (isOpen === true) transaction.failed(carriedOut);
    else transaction.doubted(carriedOut);
  }
}
