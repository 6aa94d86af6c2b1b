// Watches knex's client. It derives a class, because transactions instantiate the class of the client.
import type {
  BypassListener,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";
import { watchClient, wrapClient } from "../pg/client.ts";
import { LeasedClient } from "../pg/leased-client.ts";
import type { PgClient } from "../pg/library.ts";
import { PooledClients } from "../pg/pooled-clients.ts";
import { bypassOf } from "../tracking/bypass.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { KnexClient, KnexClientClass, KnexConnection, QueryObject } from "./library.ts";

export type WatchedClass = new (...args: never[]) => KnexClient;

export function watchedClass(client: KnexClient, tracker: SessionTracker): WatchedClass {
  return client.driverName === "pg" ? postgresClass(client, tracker) : sqliteClass(client, tracker);
}

/** Statements go over watched node-postgres clients, which do everything else. */
function postgresClass(client: KnexClient, tracker: SessionTracker): WatchedClass {
  const wrappers = new WeakMap<object, KnexConnection>();
  const handOut = (connection: KnexConnection): KnexConnection => {
    const wrapper = wrapClient(watchClient(connection as PgClient, tracker)) as KnexConnection;
    wrappers.set(connection, wrapper);
    return wrapper;
  };
  const watched = (connection: KnexConnection): KnexConnection =>
    connection instanceof LeasedClient ? connection : (wrappers.get(connection) ?? handOut(connection));
  const clients = new PooledClients(
    {
      pool: client.pool ?? client,
      take: async () => (await client.acquireConnection()) as PgClient,
      giveBack: (taken) => void client.releaseConnection(taken as KnexConnection),
    },
    tracker,
  );
  /** A statement outside a transaction takes a connection only when it needs one. */
  const lazy = {
    acquireConnection: { value: async () => leased(clients, tracker) },
    releaseConnection: { value: async (connection: LeasedClient) => connection.release() },
  };

  return class extends (client.constructor as KnexClientClass) {
    override async acquireConnection(): Promise<KnexConnection> {
      const connection = await super.acquireConnection();
      handOut(connection);
      return connection;
    }

    override _query(connection: KnexConnection, query: QueryObject): Promise<QueryObject> {
      return super._query(watched(connection), query);
    }

    override _stream(connection: KnexConnection, ...rest: [QueryObject, ...unknown[]]): Promise<unknown> {
      return super._stream(watched(connection), ...rest);
    }

    override runner(builder: unknown): object {
      return super.runner.call(this.transacting ? this : Object.create(this, lazy), builder);
    }
  };
}

/** knex marks a broken connection with `__knex__disposed`: the mark belongs on the client that is checked out. */
function leased(clients: PooledClients, tracker: SessionTracker): LeasedClient {
  const lease = new LeasedClient(clients, tracker);
  return Object.defineProperty(lease, "__knex__disposed", {
    set(reason: unknown) {
      if (lease.held !== undefined) Object.assign(lease.held, { __knex__disposed: reason });
    },
  });
}

/** SQLite rows are plain values and are stored as they are. */
function sqliteClass(client: KnexClient, tracker: SessionTracker): WatchedClass {
  const tracked = new WeakMap<KnexConnection, TrackedConnection>();
  return class extends (client.constructor as KnexClientClass) {
    override async _query(connection: KnexConnection, query: QueryObject): Promise<QueryObject> {
      if (!query.sql || !connection) return super._query(connection, query);
      const send = (sent: QueryObject) => super._query(connection, sent);
      let known = tracked.get(connection);
      if (known === undefined) {
        known = sqliteConnection(connection, tracker, send);
        tracked.set(connection, known);
      }
      return known.run(rowStatement(query, send));
    }
  };
}

export function sqliteConnection(
  connection: KnexConnection,
  tracker: SessionTracker,
  send: (query: QueryObject) => Promise<QueryObject>,
  hasTransaction = false,
): TrackedConnection {
  const all = async (sql: string, bindings: readonly string[]) =>
    (await send({ sql, bindings, method: "raw", options: {} })).response;
  const onBypass = (listener: BypassListener): void => bypassOf(connection).listen(listener);
  return tracker.connection(connection, () =>
    Object.assign(new SqliteDriver({ all, inTransaction: () => connection.inTransaction }), {
      onBypass,
      hasTransaction,
    }),
  );
}

function rowStatement(
  query: QueryObject,
  send: (query: QueryObject) => Promise<QueryObject>,
): SessionStatement<QueryObject> {
  // Options change how values are parsed.
  const hasOptions = Object.keys(query.options ?? {}).length > 0;
  return {
    text: query.sql,
    values: query.bindings,
    execute: () => send(query),
    cacheable: hasOptions
      ? undefined
      : {
          fetch: async () => (await send(query)).response,
          restore: (rows) => (Array.isArray(rows) ? Object.assign(query, { response: rows }) : undefined),
        },
  };
}
