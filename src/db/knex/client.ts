// Watches knex's client. It derives a class, because transactions instantiate the class of the client.
import type {
  BypassListener,
  SessionStatement,
  SessionTracker,
  TrackedConnection,
} from "../../core/db-session.ts";
import { watchConnection, wrapConnection } from "../mysql2/connection.ts";
import { LeasedConnection } from "../mysql2/leased-connection.ts";
import type { MysqlConnection } from "../mysql2/library.ts";
import { PooledConnections } from "../mysql2/pooled-connections.ts";
import { watchClient, wrapClient } from "../pg/client.ts";
import { LeasedClient } from "../pg/leased-client.ts";
import type { PgClient } from "../pg/library.ts";
import { PooledClients } from "../pg/pooled-clients.ts";
import { bypassOf } from "../tracking/bypass.ts";
import { SqliteDriver } from "../tracking/sqlite-driver.ts";
import type { KnexClient, KnexClientClass, KnexConnection, QueryObject } from "./library.ts";

export type WatchedClass = new (...args: never[]) => KnexClient;

export function watchedClass(client: KnexClient, tracker: SessionTracker): WatchedClass {
  if (client.driverName === "pg") return serverClass(client, overPostgres(client, tracker));
  if (client.driverName === "mysql2") return serverClass(client, overMysql(client, tracker));
  return sqliteClass(client, tracker);
}

/** A connection that is taken when a statement needs it. */
interface Lease extends KnexConnection {
  readonly held: object | undefined;
  release(): void;
}

/** How the connections of a database server are watched. */
interface Server {
  /** The same connection, watched. Call it whenever the connection is handed out. */
  wrap(connection: KnexConnection): KnexConnection;
  lease(): Lease;
  /** What a stream is read from. */
  streamed(lease: Lease): Promise<KnexConnection>;
}

function overPostgres(client: KnexClient, tracker: SessionTracker): Server {
  const clients = new PooledClients(sourceOf<PgClient>(client), tracker);
  return {
    wrap: (connection) => wrapClient(watchClient(connection as PgClient, tracker)) as KnexConnection,
    lease: () => new LeasedClient(clients, tracker),
    streamed: async (lease) => lease,
  };
}

function overMysql(client: KnexClient, tracker: SessionTracker): Server {
  const connections = new PooledConnections(sourceOf<MysqlConnection>(client), tracker);
  return {
    wrap: (connection) =>
      wrapConnection(watchConnection(connection as MysqlConnection, tracker)) as KnexConnection,
    lease: () => new LeasedConnection(connections, tracker),
    streamed: async (lease) => (await (lease as LeasedConnection).hold()) as KnexConnection,
  };
}

function sourceOf<Connection extends object>(client: KnexClient) {
  return {
    pool: client.pool ?? client,
    take: async () => (await client.acquireConnection()) as Connection,
    giveBack: (taken: Connection) => void client.releaseConnection(taken as KnexConnection),
  };
}

/** Statements go over watched connections of the driver, which do everything else. */
function serverClass(client: KnexClient, server: Server): WatchedClass {
  const wrappers = new WeakMap<object, KnexConnection>();
  const leases = new WeakSet<object>();
  const handOut = (connection: KnexConnection): KnexConnection => {
    const wrapper = server.wrap(connection);
    wrappers.set(connection, wrapper);
    return wrapper;
  };
  const watched = (connection: KnexConnection): KnexConnection =>
    leases.has(connection) ? connection : (wrappers.get(connection) ?? handOut(connection));
  /** A statement outside a transaction takes a connection only when it needs one. */
  const lazy = {
    acquireConnection: {
      value: async () => {
        const lease = disposable(server.lease());
        leases.add(lease);
        return lease;
      },
    },
    releaseConnection: { value: async (connection: Lease) => connection.release() },
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

    override async _stream(
      connection: KnexConnection,
      ...rest: [QueryObject, ...unknown[]]
    ): Promise<unknown> {
      const source = leases.has(connection)
        ? await server.streamed(connection as Lease)
        : watched(connection);
      return super._stream(source, ...rest);
    }

    override runner(builder: unknown): object {
      return super.runner.call(this.transacting ? this : Object.create(this, lazy), builder);
    }
  };
}

/** knex marks a broken connection with `__knex__disposed`: the mark belongs on the one that is checked out. */
function disposable(lease: Lease): Lease {
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
