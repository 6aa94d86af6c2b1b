// A connection, and a pool of such connections, that take a real one from the pool only when a statement needs it.
import type { SessionTracker } from "../../core/db-session.ts";
import { EventEmitter } from "../../core/lazy-builtin.ts";
import { PoolCheckout } from "../tracking/pool-checkout.ts";
import { proxyOf } from "../tracking/proxy.ts";
import {
  callBack,
  emission,
  endAfter,
  statementOf,
  type WatchedConnection,
  wrapConnection,
} from "./connection.ts";
import {
  type Callback,
  type Config,
  type MysqlConnection,
  type MysqlPool,
  type StatementCall,
  statementCall,
} from "./library.ts";
import { connectionsOf, unsent, wrapMysqlPool } from "./pool.ts";
import { PooledConnections } from "./pooled-connections.ts";

/** For libraries that take a connection for every statement: they would take one for a cache hit too. */
export class LeasedConnection extends EventEmitter {
  readonly #checkout: PoolCheckout<WatchedConnection>;
  readonly #pool: MysqlPool | undefined;
  /** The real connection, while one is checked out. */
  held: MysqlConnection | undefined;

  /** `pool`: needed for statements without a callback. */
  constructor(connections: PooledConnections, tracker: SessionTracker, pool?: MysqlPool) {
    super();
    this.#pool = pool;
    this.#checkout = new PoolCheckout(tracker, {
      pool: connections.pool,
      take: async () => {
        const watched = await connections.take();
        this.held = watched.connection;
        return watched;
      },
      giveBack: (watched, error) => {
        this.held = undefined;
        connections.giveBack(watched, error);
      },
      track: (watched) => connections.track(watched),
    });
    this.query = (...args) => this.#run(connections, "query", args);
    this.execute = (...args) => this.#run(connections, "execute", args);
  }

  readonly query: (...args: unknown[]) => unknown;
  readonly execute: (...args: unknown[]) => unknown;

  get threadId(): unknown {
    return (this.held as { readonly threadId?: unknown } | undefined)?.threadId;
  }

  get config(): Config | undefined {
    return this.#pool?.config.connectionConfig;
  }

  readonly beginTransaction = (callback?: Callback) => this.query("START TRANSACTION", callback);
  readonly commit = (callback?: Callback) => this.query("COMMIT", callback);
  readonly rollback = (callback?: Callback) => this.query("ROLLBACK", callback);
  readonly ping = this.#taking("ping");
  readonly reset = this.#taking("reset");
  readonly prepare = this.#taking("prepare");
  readonly changeUser = this.#taking("changeUser");

  /** A method that needs the real connection. */
  #taking(method: "ping" | "reset" | "prepare" | "changeUser") {
    return (...args: unknown[]): void => {
      const call = (connection: MysqlConnection) =>
        (connection[method] as (...args: unknown[]) => unknown)(...args);
      this.hold().then(call, args.at(-1) as (error: unknown) => void);
    };
  }

  /** As much as libraries use of it. */
  promise(): object {
    const promising = (method: StatementCall["method"]) => (sql: unknown, values?: unknown) =>
      new Promise((resolve, reject) => {
        const done: Callback = (error, rows, fields) => (error ? reject(error) : resolve([rows, fields]));
        this[method](sql, values, done);
      });
    return { connection: this, query: promising("query"), execute: promising("execute") };
  }

  /** A watched connection, taken now. */
  async hold(): Promise<MysqlConnection> {
    return wrapConnection(await this.#checkout.take());
  }

  release(error?: unknown): void {
    this.#checkout.release(error);
  }

  destroy(): void {
    this.held?.destroy();
    this.release();
  }

  #run(connections: PooledConnections, method: StatementCall["method"], args: readonly unknown[]): unknown {
    const call = statementCall(method, args);
    if (call === undefined) throw new TypeError("expected the text of a statement");
    const command = this.#pool && unsent(this.#pool, call);
    const { callback } = call;
    if (callback !== undefined) {
      const over = (watched: WatchedConnection) => statementOf(watched, call);
      callBack(this.#checkout.run(connections.statement(call), over), callback as Callback, command);
    } else if (command !== undefined) {
      const over = (watched: WatchedConnection) => emission(watched, call, command);
      endAfter(command, this.#checkout.run({ text: undefined }, over));
    }
    return command;
  }
}

/** A pool whose `getConnection` hands out such connections. */
export function leasingMysqlPool(pool: MysqlPool, tracker: SessionTracker): MysqlPool {
  const connections = new PooledConnections(connectionsOf(pool), tracker);
  return proxyOf(wrapMysqlPool(pool, tracker), {
    getConnection(callback: (error: unknown, connection?: MysqlConnection) => void) {
      callback(null, new LeasedConnection(connections, tracker, pool) as unknown as MysqlConnection);
    },
  });
}
