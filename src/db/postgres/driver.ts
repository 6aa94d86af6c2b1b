// The tracker's view of a connection of postgres.js, which shows no messages: it is concluded from the queries.
import type { BypassListener, ConnectionDriver } from "../../core/db-session.ts";
import { isServerRefusal } from "../pg/driver.ts";
import type { ResultMaker } from "./kept-result.ts";
import type { Connection, Handler, Query, Result, Sql } from "./library.ts";

/** Queries of the tracker, which are not reported. */
const own = new WeakSet<Query>();

export class PostgresJsDriver implements ConnectionDriver {
  readonly dialect = "postgres";
  readonly database: string;
  /** It began before it was wrapped. */
  readonly hasTransaction: boolean;
  /** Where its questions are sent. */
  sql: Sql;
  #listener: BypassListener | undefined;

  readonly #maker: ResultMaker | undefined;

  constructor(sql: Sql, maker: ResultMaker | undefined, hasTransaction: boolean) {
    const { host = [], port = [], path, database } = maker?.options ?? {};
    this.sql = sql;
    this.#maker = maker;
    this.hasTransaction = hasTransaction;
    this.database = `${path || host.map((each, at) => `${each}:${port[at]}`)}/${database}`;
  }

  async query(
    text: string,
    values: readonly string[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const query = this.sql.unsafe(text, values, { prepare: true });
    query.isRaw = true;
    own.add(query);
    const result = (await query) as Result;
    if (this.#maker !== undefined) this.#maker.Result = result.constructor as new () => Result;
    // The application may have its columns renamed, but a question has few, in this order.
    const names = [
      ...text.matchAll(/\bAS (fingerprint|file|isolation|unshareable|tables|functions|stamp)\b/g),
    ];
    return (result as unknown as readonly (readonly (Uint8Array | null)[])[]).map((row) =>
      Object.fromEntries(names.map(([, name], at) => [name, row[at] && Buffer.from(row[at]).toString()])),
    );
  }

  isRefusal(error: unknown): boolean {
    return isServerRefusal(error);
  }

  onBypass(listener: BypassListener): void {
    this.#listener = listener;
  }

  /** Reports the queries of others over this connection. */
  watch(connection: Connection): void {
    const { execute } = connection;
    connection.execute = (query) => {
      if (!own.has(query)) {
        const { resolve, reject } = query;
        const report = (failure?: { readonly error: unknown }): void => {
          // Never rejects, and reads of this process wait for it.
          this.#listener?.(query.string, failure).catch(() => {});
        };
        query.resolve = (value) => {
          report();
          resolve(value);
        };
        query.reject = (error) => {
          report({ error });
          reject(error);
        };
      }
      return execute(query);
    };
  }
}

/** Sends a query of the tracker. It resolves to what its user would have got. */
export function send(query: Query, handler: Handler): Promise<unknown> {
  own.add(query);
  return new Promise((resolve, reject) => {
    intercepted(query, resolve, reject);
    // The library would neither send nor settle it.
    if (query.cancelled) reject(new Error("the query was cancelled"));
    else handler(query);
  });
}

/**
 * From now on a query settles these. What its user waits for is settled by `settleWith`; a cursor replaces that with every
 * batch of rows.
 */
const settlers = new WeakMap<Query, Pick<Query, "resolve" | "reject">>();

function intercepted(query: Query, resolve: Query["resolve"], reject: Query["reject"]): void {
  const users = settlers.get(query) ?? { resolve: query.resolve, reject: query.reject };
  settlers.set(query, users);
  const property = (name: "resolve" | "reject", own: Query["resolve"]): PropertyDescriptor => ({
    configurable: true,
    get: () => own,
    set: (given: Query["resolve"]) => {
      users[name] = given;
    },
  });
  Reflect.defineProperty(query, "resolve", property("resolve", resolve));
  Reflect.defineProperty(query, "reject", property("reject", reject));
}

/** Settles what the user of a query waits for. */
export function settleWith(query: Query, running: Promise<unknown>): void {
  const users = () => settlers.get(query) ?? query;
  running.then(
    (value) => users().resolve(value),
    (error: unknown) => users().reject(error),
  );
}
