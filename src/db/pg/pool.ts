// A pool of node-postgres whose queries, and those of the clients it hands out, are watched.
import type {
  AcquiredConnection,
  PooledStatement,
  SessionStatement,
  SessionTracker,
} from "../../core/session.ts";
import { mirror } from "../mirror.ts";
import { callBack, statementOf, type WatchedClient, watchClient, wrapClient } from "./client.ts";
import { isKeepable, type ResultMaker, restoreKept, resultMaker } from "./kept-result.ts";
import { type Callback, isSubmittable, type PgClient, type PgPool, type Submittable } from "./library.ts";
import { type QueryCall, queryCall } from "./query-call.ts";

export function wrapPool(pool: PgPool, tracker: SessionTracker): PgPool {
  /** One for each client, so that what an application remembers of a client stays true. */
  const wrappers = new WeakMap<PgClient, PgClient>();
  /** As the latest client has it: parsers may be set when a client connects. */
  let maker: ResultMaker | undefined;

  const wrapperOf = (client: PgClient): PgClient => {
    const watched = watchClient(client, tracker);
    const wrapper = wrappers.get(client) ?? wrapClient(watched);
    wrappers.set(client, wrapper);
    return wrapper;
  };

  const acquire = async (
    statementOver: (watched: WatchedClient) => SessionStatement<unknown>,
  ): Promise<AcquiredConnection<unknown>> => {
    const client = (await pool.connect()) as PgClient;
    maker = resultMaker(client);
    // A client without a listener would end the process when its connection is lost; the query is told of it anyway.
    const ignore = (): void => {};
    client.on("error", ignore);
    const watched = watchClient(client, tracker);
    return {
      connection: watched.connection,
      statement: statementOver(watched),
      release(error) {
        client.removeListener("error", ignore);
        client.release?.(error);
      },
    };
  };

  const run = (call: QueryCall): Promise<unknown> => {
    const { config } = call;
    const known = isKeepable(config) ? maker : undefined;
    const statement: PooledStatement<unknown> = {
      text: config.text,
      values: config.values,
      restore: known && ((data) => restoreKept(data, known, config)),
    };
    return tracker.pooled(pool, statement, () => acquire((watched) => statementOf(watched, call)));
  };

  const submit = (submittable: Submittable, values: unknown): Promise<unknown> => {
    const { text } = submittable;
    const statement = { text: typeof text === "string" ? text : undefined };
    return tracker.pooled(pool, statement, () =>
      acquire(({ client }) => ({
        ...statement,
        execute: () =>
          new Promise((resolve, reject) => {
            client.query(submittable, values, (error: unknown, result: unknown) =>
              error ? reject(error) : resolve(result),
            );
          }),
      })),
    );
  };

  return mirror(pool, {
    query(...args: unknown[]) {
      const [first, second, third] = args;
      if (isSubmittable(first)) {
        const callback = typeof second === "function" ? second : third;
        const result = submit(first, typeof second === "function" ? undefined : second);
        return typeof callback === "function" ? callBack(result, callback as Callback, undefined) : result;
      }
      const call = queryCall(args);
      if (call === undefined) return pool.query(first, second, third);
      const result = run(call);
      return call.callback === undefined ? result : callBack(result, call.callback, undefined);
    },
    connect(callback?: (error: unknown, client?: PgClient, done?: unknown) => void) {
      if (callback === undefined) return pool.connect()?.then(wrapperOf);
      return pool.connect((error, client, done) => callback(error, client && wrapperOf(client), done));
    },
  });
}
