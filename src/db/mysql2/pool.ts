// A pool of mysql2 whose statements, and those of the connections it hands out, are watched.
import type { PooledStatement, SessionStatement, SessionTracker } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import {
  callBack,
  emission,
  endAfter,
  statementOf,
  textOf,
  valuesOf,
  type WatchedConnection,
  watchConnection,
  wrapConnection,
} from "./connection.ts";
import { type Answer, restoreKept } from "./kept-result.ts";
import {
  type Command,
  type MysqlConnection,
  type MysqlPool,
  promisesOver,
  type StatementCall,
  statementCall,
} from "./library.ts";

/** After these the pool gives the connection up: the server has become a replica. */
const READ_ONLY: ReadonlySet<unknown> = new Set([1290, 1792, 1836]);

/** The connections of a pool: taken for a statement, watched, and given back. */
export class PooledConnections {
  readonly pool: MysqlPool;
  readonly #tracker: SessionTracker;
  /** The latest, which tells how results are read. */
  #latest: WatchedConnection | undefined;

  constructor(pool: MysqlPool, tracker: SessionTracker) {
    this.pool = pool;
    this.#tracker = tracker;
  }

  take(): Promise<WatchedConnection> {
    return new Promise((resolve, reject) => {
      this.pool.getConnection((error, connection) => {
        if (connection === undefined) return reject(error);
        this.#latest = watchConnection(connection, this.#tracker);
        resolve(this.#latest);
      });
    });
  }

  giveBack({ connection }: WatchedConnection, error: unknown): void {
    if (READ_ONLY.has((error as { readonly errno?: unknown } | undefined)?.errno)) connection.destroy();
    else connection.release?.();
  }

  track({ tracked }: WatchedConnection): WatchedConnection["tracked"] {
    return tracked;
  }

  statement(call: StatementCall): PooledStatement<Answer> {
    const latest = this.#latest;
    if (latest === undefined) return { text: undefined };
    const { connection, driver } = latest;
    return {
      text: textOf(connection, driver, call),
      values: valuesOf(call),
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
}

/** The command that the pool would return, without a connection to send it. */
function unsent(pool: MysqlPool, { options, callback }: StatementCall): Command {
  const idle = { config: pool.config, getConnection() {} };
  return pool.query.call(idle as unknown as MysqlPool, options, undefined, callback);
}

export function wrapMysqlPool(pool: MysqlPool, tracker: SessionTracker): MysqlPool {
  const connections = new PooledConnections(pool, tracker);
  /** One wrapper per connection, so that an application can compare it or use it as a map key. */
  const wrappers = new WeakMap<MysqlConnection, MysqlConnection>();
  const originals = new WeakMap<MysqlConnection, MysqlConnection>();

  const wrapperOf = (connection: MysqlConnection): MysqlConnection => {
    const watched = watchConnection(connection, tracker);
    const wrapper = wrappers.get(connection) ?? wrapConnection(watched);
    wrappers.set(connection, wrapper);
    originals.set(wrapper, connection);
    return wrapper;
  };

  const run = (method: StatementCall["method"], args: readonly unknown[]): unknown => {
    const call = statementCall(method, args);
    if (call === undefined) return pool[method](...(args as [unknown]));
    const { callback } = call;
    const command = unsent(pool, call);
    if (callback === undefined) {
      endAfter(
        command,
        connections.run({ text: undefined }, (watched) => emission(watched, call, command)),
      );
      return command;
    }
    const result = connections.run(connections.statement(call), (watched) => statementOf(watched, call));
    callBack(result, callback, command);
    return command;
  };

  const wrapped: MysqlPool = proxyOf(pool, {
    query: (...args: unknown[]) => run("query", args),
    execute: (...args: unknown[]) => run("execute", args),
    getConnection: (callback: (error: unknown, connection?: MysqlConnection) => void) =>
      pool.getConnection((error, connection) => callback(error, connection && wrapperOf(connection))),
    releaseConnection: (connection: MysqlConnection) =>
      pool.releaseConnection(originals.get(connection) ?? connection),
    promise: (implementation?: unknown) => promisesOver(pool.promise(implementation), wrapped),
  });
  return wrapped;
}
