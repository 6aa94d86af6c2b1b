// A pool of node-postgres for a library that takes a client for each statement: none is taken for what is cached.
import type { SessionTracker } from "../../core/db-session.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { LeasedClient } from "./leased-client.ts";
import type { PgClient, PgPool } from "./library.ts";
import { clientsOf, wrapPool } from "./pool.ts";
import { PooledClients } from "./pooled-clients.ts";

type Handler = (error: unknown, client?: PgClient, done?: (error?: unknown) => void) => void;

export function leasingPool(pool: PgPool, tracker: SessionTracker): PgPool {
  const clients = new PooledClients(clientsOf(pool), tracker);
  const lend = (): PgClient => new LeasedClient(clients, tracker) as unknown as PgClient;
  return proxyOf(wrapPool(pool, tracker), {
    connect(handler?: Handler) {
      const client = lend();
      if (handler === undefined) return Promise.resolve(client);
      handler(undefined, client, (error) => client.release?.(error));
      return undefined;
    },
  });
}
