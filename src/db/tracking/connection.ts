// A tracked database connection: runs its statements in order, follows its transaction and caches eligible reads.
import type { SessionStatement, TrackedConnection, TransactionStatus } from "../../core/db-session.ts";
import type { Statement } from "../sql/statement.ts";
import type { CachedTables } from "./cached-tables.ts";
import { type CommitListener, type ConnectionState, mayCommit, sql, sqlCode } from "./connection-state.ts";
import type { Debug } from "./debug.ts";
import type { Invalidations } from "./invalidation.ts";
import { type CacheableRead, type Fetched, isBounded, isShareable, type ReadCache } from "./read-cache.ts";
import type { Settings } from "./settings.ts";
import type { Writes } from "./transaction.ts";

/** What watched connections report to. */
export interface Watcher {
  readonly tables: CachedTables;
  readonly reads: ReadCache;
  readonly invalidations: Invalidations;
  readonly debug: Debug | undefined;
  /** Delivers what was committed. */
  readonly committed: CommitListener;
}

type Read = CacheableRead<unknown>;

/** Outside of a transaction, code of the database may commit in between. */
const mayCommitWithin = (statement: Statement): boolean =>
  statement.kind === "write" && statement.effects.anything;

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
    return sqlCode.isReady ? this.#begin(statement) : sqlCode.call(() => this.#begin(statement));
  }

  #begin<Result>(statement: SessionStatement<Result>): Promise<Result> {
    const statements = sql().statementsIn(statement.text, this.state.driver.dialect);
    const { tables, debug } = this.#watcher;
    tables.note(statements);
    if (debug !== undefined && statements.length > 0)
      debug(statement.text, this.state.driver.dialect, this.#situation());
    return this.state.inTurn(() => this.#run(statement, statements));
  }

  /**
   * Runs a read whose result is to be stored under `settings`, after querying whether this connection still has them: they
   * may have been changed past the tracker.
   */
  fetch<Result>(statement: SessionStatement<Result>, settings: Settings, read: Read): Promise<Fetched> {
    return this.state.inTurn(() => this.#fetch(statement, settings, read, true));
  }

  async #run<Result>(statement: SessionStatement<Result>, statements: readonly Statement[]): Promise<Result> {
    const { reads } = this.#watcher;
    const read = reads.readOf(statement, statement.cacheable?.restore, statements);
    if (this.state.driver.ready !== undefined) await this.state.driver.ready();
    if (read === undefined) return this.#execute(statement, statements);
    const queries = this.state.queries;
    const settings = await this.#eligible(read, false);
    if (settings === undefined) return this.#execute(statement, statements);
    const isFresh = queries !== this.state.queries;
    const answer = await reads.whileConnected(read, settings, () =>
      this.#fetch(statement, settings, read, !isFresh),
    );
    return answer === undefined ? this.#execute(statement, statements) : answer.result;
  }

  async #fetch<Result>(
    { cacheable: keeping, execute }: SessionStatement<Result>,
    settings: Settings,
    read: Read,
    checksSettings: boolean,
  ): Promise<Fetched> {
    if (this.state.driver.ready !== undefined) await this.state.driver.ready();
    const changes = this.state.changes;
    const present = checksSettings ? await this.#eligible(read, true) : settings;
    // A function that was redefined: the caller sends the statement like any other that may write.
    if (present === undefined && this.state.isKnownToWrite(read.statement)) {
      return { data: undefined, isShareable: false };
    }
    const wasUsable = this.state.isUsable;
    const wasOpen = this.state.status !== "idle";
    try {
      const data = await (keeping === undefined ? execute() : keeping.fetch());
      const isSame = present?.fingerprint === settings.fingerprint && changes === this.state.changes;
      const isShared = isSame && isBounded(data) && keeping?.isCacheable?.(data) !== false;
      return { data, isShareable: isShared };
    } catch (error) {
      await this.#failed([], error, wasUsable, wasOpen);
      throw error;
    }
  }

  /** The settings, if the read over this connection may be cached now. `refresh`: query them again. */
  async #eligible(read: Read, refresh: boolean): Promise<Settings | undefined> {
    const { state } = this;
    if (!this.#mayCache(state.status)) return undefined;
    const settings = await state.settings(read.names, refresh);
    if (settings === undefined || !isShareable(read, settings)) return undefined;
    // The reply may have revealed a transaction that did not begin here.
    const { status } = state;
    return status === "idle" || (settings.readsCommitted && this.#mayCache(status)) ? settings : undefined;
  }

  /** In words, what keeps any read over this connection from the cache. */
  #situation(): string | undefined {
    const { status, holdsLock } = this.state;
    if (this.#mayCache(status)) return undefined;
    return holdsLock ? "its connection holds a lock" : "it is in a transaction";
  }

  #mayCache(status: TransactionStatus): boolean {
    const { holdsLock, transaction } = this.state;
    return !holdsLock && (status === "idle" || (status === "open" && transaction.mayCache));
  }

  async #execute<Result>(
    statement: SessionStatement<Result>,
    unsettled: readonly Statement[],
  ): Promise<Result> {
    const { state } = this;
    const { driver, transaction } = state;
    if (unsettled[0]?.kind === "begin" && state.status === "idle") await state.probeSettings();
    const statements = await state.settled(unsettled);
    const wasUsable = state.isUsable;
    const before = state.status;
    const wasOpen = before !== "idle";
    state.usedBy(this.#watcher.committed);
    let result: Result;
    state.commitsItself = statements.some(({ kind }) => kind === "commit");
    try {
      result = await statement.execute();
    } catch (error) {
      await this.#failed(statements, error, wasUsable, wasOpen);
      throw error;
    } finally {
      state.commitsItself = false;
    }
    const committed = transaction.executed(
      statements,
      statement.commands?.(result) ?? [],
      before,
      driver.status?.(),
    );
    state.noteEffects(statements);
    if (!committed.isEmpty) await this.#watcher.committed(await state.touchedBy(committed));
    await state.delivery;
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
    const isSqlite = driver.dialect === "sqlite";
    if (driver.dialect === "mysql") return this.#failedInMysql(statements, error, wasOpen);
    const written = transaction.atStake(statements);
    const tagsOf = (writes: Writes): readonly string[] => tables.tagsOf(writes);
    if (driver.isRefusal(error)) {
      // Statements before the refused one may have been committed: by a COMMIT among them, or in SQLite one by one.
      const isAutocommit = isSqlite && !wasOpen;
      const isPartial = statements.length > 1 && (mayHaveCommitted || isAutocommit);
      // A procedure or DO block may have committed before it failed.
      const isProcedure = !wasOpen && statements.some(mayCommitWithin);
      if (isPartial || isProcedure) await invalidations.deliver(tagsOf(await state.touchedBy(written)));
      if (isSqlite) await this.#refusedBySqlite(statements, wasOpen);
      else if (mayHaveCommitted || statements.some(({ kind }) => kind === "rollback")) transaction.end();
      else if (wasOpen) transaction.aborted();
    } else if (mayHaveCommitted || !wasOpen) {
      transaction.end();
      await invalidations.deliverUnknown(tagsOf(state.touchedBefore(written)), driver.answered?.());
    } else if (isSqlite) {
      transaction.outcomeUnknown(statements);
    } else {
      transaction.failed(statements);
    }
  }

  /** MySQL goes on with a transaction after an error, ends it, or has committed it before. The next answer tells. */
  async #failedInMysql(statements: readonly Statement[], error: unknown, wasOpen: boolean): Promise<void> {
    const { state } = this;
    const { driver, transaction } = state;
    const { invalidations, tables } = this.#watcher;
    const written = transaction.atStake(statements);
    const hasCommit = statements.some(({ kind }) => kind === "commit");
    const commitsWithin = statements.some(mayCommit) || (hasCommit && statements.length > 1);
    if (!driver.isRefusal(error)) {
      if (wasOpen && !hasCommit && !commitsWithin) return transaction.failed(statements);
      transaction.end();
      const tags = tables.tagsOf(state.touchedBefore(written));
      return invalidations.deliverUnknown(tags, driver.answered?.());
    }
    await driver.ready?.();
    const isOver = state.status === "idle";
    const isPartial = !wasOpen && statements.length > 1;
    // Whatever has ended it, it may have been a commit.
    const hasEnded = wasOpen && isOver && !hasCommit && driver.isRollback?.(error) !== true;
    if (isPartial || commitsWithin || hasEnded)
      await invalidations.deliver(tables.tagsOf(await state.touchedBy(written)));
    if (isOver) transaction.end();
    else transaction.failed(statements);
  }

  /** SQLite keeps a transaction open whose COMMIT failed as busy, and ends some transactions when a statement fails. */
  async #refusedBySqlite(statements: readonly Statement[], wasOpen: boolean): Promise<void> {
    const mayBegin = statements.some(({ kind }) => kind === "begin" || kind === "savepoint");
    if (!wasOpen && !mayBegin) return;
    const { transaction } = this.state;
    const isOpen = await this.state.isOpenAfterRefusal();
    const executed = statements.slice(0, -1);
    // A refused ROLLBACK means there is no transaction.
    const hasNone = isOpen === undefined && statements.some(({ kind }) => kind === "rollback");
    if (isOpen === false || hasNone) transaction.end();
    else if (isOpen === true) transaction.failed(executed);
    else transaction.outcomeUnknown(executed);
  }
}
