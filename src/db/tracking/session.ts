// Tracks database sessions for a cache: reads are cached under the tags of their tables, and commits invalidate them.
import { type Clock, systemClock } from "../../core/clock.ts";
import type {
  AcquiredConnection,
  ConnectionDriver,
  PooledStatement,
  SessionScope,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";
import { ConfigError } from "../../core/errors.ts";
import { types } from "../../core/lazy-builtin.ts";
import { CachedTables } from "./cached-tables.ts";
import { WatchedConnection, type Watcher } from "./connection.ts";
import { ConnectionState, sql, sqlCode } from "./connection-state.ts";
import { debugOf } from "./debug.ts";
import { invalidations } from "./invalidation.ts";
import { isShareable, ReadCache } from "./read-cache.ts";
import { combined, covers, type Settings } from "./settings.ts";

/** Shared by all trackers: one transaction may be used through several of them. */
const states = new WeakMap<object, ConnectionState>();

/** The settings that the connections of a pool share, as last reported by one of them. */
interface PoolSettings {
  readonly settings: Settings;
  readonly dialect: ConnectionDriver["dialect"];
}

/** The tracker of a scope, to pass to an adapter. */
export function trackSessions(scope: SessionScope, clock: Clock = systemClock): SessionTracker {
  return new Sessions(scope, clock);
}

class Sessions implements SessionTracker {
  readonly #watcher: Watcher;
  readonly #pools = new WeakMap<object, PoolSettings>();

  constructor(scope: SessionScope, clock: Clock) {
    // Ahead of the first statement, which reports an error of the import.
    sqlCode.load().catch(() => {});
    const tables = new CachedTables(scope);
    const delivery = invalidations(scope.cache, clock);
    const reads = new ReadCache(scope.cache, tables, delivery);
    const committed: Watcher["committed"] = (writes) =>
      types.isPromise(writes)
        ? delivery.deliverLater(writes.then((known) => tables.tagsOf(known)))
        : delivery.deliver(tables.tagsOf(writes));
    this.#watcher = { tables, reads, invalidations: delivery, committed, debug: debugOf(scope) };
  }

  connection(connection: object, driver: () => ConnectionDriver): WatchedConnection {
    let state = states.get(connection);
    if (state === undefined) {
      state = new ConnectionState(driver());
      states.set(connection, state);
      // In the background: the tokenizer decides until it is loaded.
      if (state.driver.dialect === "postgres") loadParser().catch(() => {});
    }
    state.handOut();
    return new WatchedConnection(state, this.#watcher);
  }

  pooled<Result>(
    pool: object,
    statement: PooledStatement<Result>,
    acquire: () => Promise<AcquiredConnection<Result>>,
  ): Promise<Result> {
    return sqlCode.isReady
      ? this.#pooled(pool, statement, acquire)
      : sqlCode.call(() => this.#pooled(pool, statement, acquire));
  }

  async #pooled<Result>(
    pool: object,
    statement: PooledStatement<Result>,
    acquire: () => Promise<AcquiredConnection<Result>>,
  ): Promise<Result> {
    const known = this.#pools.get(pool);
    const statements = known === undefined ? [] : sql().statementsIn(statement.text, known.dialect);
    const read = this.#watcher.reads.readOf(statement, statement.restore, statements);
    if (known === undefined || read === undefined || !covers(known.settings, read.names)) {
      return this.#run(pool, acquire, (acquired) => acquired.connection.run(acquired.statement));
    }
    const { settings } = known;
    this.#watcher.tables.note(statements);
    if (isShareable(read, settings)) {
      this.#watcher.debug?.(statement.text, known.dialect);
      const answer = await this.#watcher.reads.fromPool(read, settings, () =>
        this.#run(pool, acquire, (acquired) =>
          watched(acquired.connection).fetch(acquired.statement, settings, read),
        ),
      );
      if (answer !== undefined) return answer.result;
    }
    return this.#run(pool, acquire, ({ connection, statement: { cacheable: _, ...uncached } }) =>
      connection.run(uncached),
    );
  }

  async #run<Result, Outcome>(
    pool: object,
    acquire: () => Promise<AcquiredConnection<Result>>,
    work: (acquired: AcquiredConnection<Result>) => Promise<Outcome>,
  ): Promise<Outcome> {
    const acquired = await acquire();
    const { state } = watched(acquired.connection);
    let outcome: Outcome;
    try {
      outcome = await work(acquired);
    } catch (error) {
      acquired.release(error);
      throw error;
    }
    // A connection whose settings were changed goes back to the pool with them, and says nothing about the others.
    const settings = state.originalSettings;
    if (settings !== undefined) this.#learn(pool, settings, state.driver.dialect);
    acquired.release();
    return outcome;
  }

  #learn(pool: object, settings: Settings, dialect: PoolSettings["dialect"]): void {
    const known = this.#pools.get(pool)?.settings;
    const isSame = known !== undefined && known.fingerprint === settings.fingerprint;
    this.#pools.set(pool, { dialect, settings: isSame ? combined(known, settings) : settings });
  }
}

async function loadParser(): Promise<void> {
  const { postgresParser } = await sqlCode.load();
  await postgresParser.load();
}

function watched(connection: TrackedConnection): WatchedConnection {
  if (connection instanceof WatchedConnection) return connection;
  throw new ConfigError(
    "ARGUMENT_INVALID",
    "pooled(): expected a connection of the same tracker, got another object.",
  );
}
