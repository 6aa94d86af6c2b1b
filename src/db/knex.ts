// knex over PostgreSQL, MySQL or SQLite: wraps `knex` itself, or one of its transactions, for cachedDependency.
import type { Knex } from "knex";
import type { SessionAdapter, SessionTracker, TrackedConnection } from "../core/db-session.ts";
import { EventEmitter } from "../core/lazy-builtin.ts";
import { sqliteConnection, type WatchedClass, watchedClass } from "./knex/client.ts";
import {
  isKnex,
  type KnexClient,
  type KnexConnection,
  type KnexSession,
  type QueryObject,
} from "./knex/library.ts";
import { watchConnection } from "./mysql2/connection.ts";
import type { MysqlConnection } from "./mysql2/library.ts";
import { watchClient } from "./pg/client.ts";
import type { PgClient } from "./pg/library.ts";
import { bypassOf } from "./tracking/bypass.ts";
import { perSession } from "./tracking/proxy.ts";

const wrapped = perSession(wrapSession);

/** `cachedDependency` recognises these sessions on its own. */
export const knexSessions: SessionAdapter<Knex> = {
  name: "knex",
  recognises: (session): session is Knex => isKnex(session),
  dialect: (session) => {
    const { driverName } = (session as unknown as KnexSession).client;
    return driverName === "pg" ? "postgres" : driverName === "mysql2" ? "mysql" : "sqlite";
  },
  wrap: (session, tracker) => {
    const known = session as unknown as KnexSession;
    return (known.isTransaction ? wrapTransaction(known, tracker) : wrapped(known, tracker)) as never;
  },
};

function wrapSession(session: KnexSession, tracker: SessionTracker): KnexSession {
  return withClient(session, derivedClient(session.client, watchedClass(session.client, tracker)));
}

/** The same `knex`, with builders that run on `client`. */
function withClient(
  session: KnexSession,
  client: KnexClient,
  members: Readonly<Record<string, unknown>> = {},
): KnexSession {
  const context: object = Object.create(session.context, { client: { value: client, writable: true } });
  const own: Record<string, unknown> = { ...members, client, context };
  return new Proxy(session, {
    apply: (target, self, args) => Object.assign(Reflect.apply(target, self, args) as object, { client }),
    get: (target, property, receiver) =>
      typeof property === "string" && Object.hasOwn(own, property)
        ? own[property]
        : Reflect.get(target, property, receiver),
  });
}

/** Inherits every member of the client, with the methods of `derived` overriding its own. */
function derivedClient(client: KnexClient, derived: WatchedClass): KnexClient {
  const descriptors = Object.getOwnPropertyDescriptors(derived.prototype) as PropertyDescriptorMap;
  const watched = Object.create(client, descriptors) as KnexClient;
  // Methods that change the pool or the listeners must run on the client itself.
  for (const name of [...Object.keys(EventEmitter.prototype), "destroy", "initializePool"]) {
    const method: unknown = client[name as keyof KnexClient];
    if (typeof method !== "function") continue;
    const value = (...args: unknown[]): unknown => {
      const result: unknown = Reflect.apply(method, client, args);
      return result === client ? watched : result;
    };
    Object.defineProperty(watched, name, { value, configurable: true, writable: true });
  }
  return watched;
}

/** The connection of a transaction that began elsewhere, and how statements are sent over it. */
interface Held {
  readonly connection: TrackedConnection;
  own<Result>(send: () => Result): Result;
}

/** The transaction began unwatched, so its reads are never cached; its commit still invalidates. */
async function heldBy(session: KnexSession, tracker: SessionTracker): Promise<Held> {
  const { client } = session;
  const connection = await client.acquireConnection();
  if (client.driverName === "pg")
    return { connection: watchClient(connection as PgClient, tracker).connection, own: (send) => send() };
  if (client.driverName === "mysql2") {
    const { tracked, driver } = watchConnection(connection as MysqlConnection, tracker);
    return { connection: tracked, own: (send) => driver.own(send) };
  }
  const bypass = bypassOf(connection);
  // Each transaction sends its statements with a client of its own.
  for (let each: KnexSession | undefined = session; each !== undefined; each = each.parentTransaction)
    bypass.watch(each.client, "_query", (_, { sql }) => sql);
  const own = bypass.own.bind(bypass);
  const send = (query: QueryObject) => own(() => client._query(connection, query));
  return { connection: sqliteConnection(connection, tracker, send, true), own };
}

function wrapTransaction(session: KnexSession, tracker: SessionTracker): KnexSession {
  const { client } = session;
  const held = heldBy(session, tracker);
  const run = async <Result>(text: string, send: () => Promise<Result>): Promise<Result> => {
    const { connection, own } = await held;
    return connection.run({ text, execute: () => own(send), commands: (result) => commandsOf(result) });
  };
  class Watched extends (client.constructor as WatchedClass) {
    override query(...[connectionHeld, query]: Parameters<KnexClient["query"]>) {
      const text = typeof query === "string" ? query : query.sql;
      return run(text, () => client.query(connectionHeld as KnexConnection, query));
    }
  }
  return withClient(session, derivedClient(client, Watched), {
    commit: (value?: unknown) => run("COMMIT", async () => session.commit?.(value)),
    rollback: (error?: unknown) => run("ROLLBACK", async () => session.rollback?.(error)),
  });
}

function commandsOf(result: unknown): readonly string[] {
  const { response } = (result ?? {}) as { readonly response?: { readonly command?: string } };
  return response?.command === undefined ? [] : [response.command];
}
