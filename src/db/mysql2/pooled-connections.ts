// The connections of any library's pool of mysql2: taken for a statement, watched, and given back.
import type { PooledStatement, SessionStatement, SessionTracker } from "../../core/db-session.ts";
import type { ConnectionSource } from "../tracking/pool-checkout.ts";
import { statementOf, textOf, valuesOf, type WatchedConnection, watchConnection } from "./connection.ts";
import { type Answer, restoreKept } from "./kept-result.ts";
import type { MysqlConnection, StatementCall } from "./library.ts";

/** Where connections come from. */
export interface MysqlSource {
  readonly pool: object;
  take(): Promise<MysqlConnection>;
  giveBack(connection: MysqlConnection, error: unknown): void;
}

export class PooledConnections implements ConnectionSource<WatchedConnection> {
  readonly #source: MysqlSource;
  readonly #tracker: SessionTracker;
  /** It tells how results are read. */
  #latest: WatchedConnection | undefined;

  constructor(source: MysqlSource, tracker: SessionTracker) {
    this.#source = source;
    this.#tracker = tracker;
  }

  get pool(): object {
    return this.#source.pool;
  }

  async take(): Promise<WatchedConnection> {
    this.#latest = watchConnection(await this.#source.take(), this.#tracker);
    return this.#latest;
  }

  giveBack({ connection }: WatchedConnection, error: unknown): void {
    this.#source.giveBack(connection, error);
  }

  track({ tracked }: WatchedConnection): WatchedConnection["tracked"] {
    return tracked;
  }

  statement(call: StatementCall): PooledStatement<Answer> {
    const latest = this.#latest;
    // Without a connection nobody knows how its values are written into it, so that it has no key.
    if (latest === undefined) return { text: call.options.sql };
    const { connection, driver } = latest;
    return {
      text: textOf(connection, driver, call),
      values: valuesOf(connection, call),
      restore: (data) => restoreKept(data, { classes: driver.classes, config: connection.config }, call),
    };
  }

  /** Runs a statement on any connection of the pool. */
  run<Result>(
    statement: PooledStatement<Result>,
    over: (watched: WatchedConnection) => SessionStatement<Result>,
  ): Promise<Result> {
    return this.#tracker.pooled(this.pool, statement, async () => {
      const watched = await this.take();
      return {
        connection: watched.tracked,
        statement: over(watched),
        release: (error) => this.giveBack(watched, error),
      };
    });
  }

  query(call: StatementCall): Promise<Answer> {
    return this.run(this.statement(call), (watched) => statementOf(watched, call));
  }
}
