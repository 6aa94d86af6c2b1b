// A pool of mysql2 whose statements, and those of the connections it hands out, are watched.
import type { SessionTracker } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { callBack, emission, endAfter, watchConnection, wrapConnection } from "./connection.ts";
import {
  type Command,
  type MysqlConnection,
  type MysqlPool,
  promisesOver,
  type StatementCall,
  statementCall,
} from "./library.ts";
import { type MysqlSource, PooledConnections } from "./pooled-connections.ts";

/** After these the pool gives the connection up: the server has become a replica. */
const READ_ONLY: ReadonlySet<unknown> = new Set([1290, 1792, 1836]);

export function connectionsOf(pool: MysqlPool): MysqlSource {
  return {
    pool,
    take: () =>
      new Promise((resolve, reject) => {
        pool.getConnection((error, connection) =>
          connection === undefined ? reject(error) : resolve(connection),
        );
      }),
    giveBack(connection, error) {
      if (READ_ONLY.has((error as { readonly errno?: unknown } | undefined)?.errno)) connection.destroy();
      else connection.release?.();
    },
  };
}

/** The command that the pool would return, without a connection to send it. */
export function unsent(pool: MysqlPool, { options, callback }: StatementCall): Command {
  const idle = { config: pool.config, getConnection() {} };
  return pool.query.call(idle as unknown as MysqlPool, options, undefined, callback);
}

export function wrapMysqlPool(pool: MysqlPool, tracker: SessionTracker): MysqlPool {
  const connections = new PooledConnections(connectionsOf(pool), tracker);
  /** One wrapper per connection, so that an application can compare it or use it as a map key. */
  const wrappers = new WeakMap<MysqlConnection, MysqlConnection>();
  const handedOut = new WeakSet<MysqlConnection>();

  const wrapperOf = (connection: MysqlConnection): MysqlConnection => {
    const watched = watchConnection(connection, tracker);
    const wrapper = wrappers.get(connection) ?? wrapConnection(watched);
    wrappers.set(connection, wrapper);
    handedOut.add(wrapper);
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
    callBack(connections.query(call), callback, command);
    return command;
  };

  const wrapped: MysqlPool = proxyOf(pool, {
    query: (...args: unknown[]) => run("query", args),
    execute: (...args: unknown[]) => run("execute", args),
    getConnection: (callback: (error: unknown, connection?: MysqlConnection) => void) =>
      pool.getConnection((error, connection) => callback(error, connection && wrapperOf(connection))),
    releaseConnection: (connection: MysqlConnection) =>
      handedOut.has(connection) ? connection.release?.() : pool.releaseConnection(connection),
    promise: (implementation?: unknown) => promisesOver(pool.promise(implementation), wrapped),
  });
  return wrapped;
}
