// A node-postgres pool whose queries, and those of the clients it hands out, are watched.
import type { SessionTracker } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { callBack, watchClient, wrapClient } from "./client.ts";
import {
  type Callback,
  isSubmittable,
  type PgClient,
  type PgPool,
  queryCall,
  refuseNative,
  type Submittable,
} from "./library.ts";
import { type ClientSource, PooledClients } from "./pooled-clients.ts";

/** Throws ConfigError for a pool of pg-native. */
export function clientsOf(pool: PgPool): ClientSource {
  refuseNative(pool.Client);
  return {
    pool,
    take: async () => (await pool.connect()) as PgClient,
    giveBack: (client, error) => client.release?.(error),
  };
}

export function wrapPool(pool: PgPool, tracker: SessionTracker): PgPool {
  /** One wrapper per client, so that an application can use a client as a map key or compare it. */
  const wrappers = new WeakMap<PgClient, PgClient>();
  const clients = new PooledClients(clientsOf(pool), tracker);

  const wrapperOf = (client: PgClient): PgClient => {
    const watched = watchClient(client, tracker);
    const wrapper = wrappers.get(client) ?? wrapClient(watched);
    wrappers.set(client, wrapper);
    return wrapper;
  };

  const submit = (submittable: Submittable, values: unknown): Promise<unknown> => {
    const { text } = submittable;
    const statement = { text: typeof text === "string" ? text : undefined };
    return clients.run(statement, ({ client }) => ({
      ...statement,
      execute: () =>
        new Promise((resolve, reject) => {
          client.query(submittable, values, (error: unknown, result: unknown) =>
            error ? reject(error) : resolve(result),
          );
        }),
    }));
  };

  return proxyOf(pool, {
    query(...args: unknown[]) {
      const [first, second, third] = args;
      if (isSubmittable(first)) {
        const callback = typeof second === "function" ? second : third;
        const result = submit(first, typeof second === "function" ? undefined : second);
        return typeof callback === "function" ? callBack(result, callback as Callback, undefined) : result;
      }
      const call = queryCall(args);
      if (call === undefined) return pool.query(first, second, third);
      const result = clients.query(call);
      return call.callback === undefined ? result : callBack(result, call.callback, undefined);
    },
    connect(callback?: (error: unknown, client?: PgClient, done?: unknown) => void) {
      if (callback === undefined) return pool.connect()?.then(wrapperOf);
      return pool.connect((error, client, done) => callback(error, client && wrapperOf(client), done));
    },
  });
}
