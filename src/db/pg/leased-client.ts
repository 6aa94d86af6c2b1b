// A client, and a pool of such clients, that take a real client from the pool only when a statement needs one.
import type { SessionTracker } from "../../core/db-session.ts";
import { EventEmitter } from "../../core/lazy-builtin.ts";
import { PoolCheckout } from "../tracking/pool-checkout.ts";
import { proxyOf } from "../tracking/proxy.ts";
import { callBack, statementOf, submit, type WatchedClient } from "./client.ts";
import { isSubmittable, type PgClient, type PgPool, queryCall } from "./library.ts";
import { clientsOf, wrapPool } from "./pool.ts";
import { PooledClients } from "./pooled-clients.ts";

const FORWARDED = ["error", "end", "notice", "notification", "drain"];

/** For libraries that take a client for every statement: they would take one for a cache hit too. */
export class LeasedClient extends EventEmitter {
  readonly #clients: PooledClients;
  readonly #checkout: PoolCheckout<WatchedClient>;
  readonly #forwarders = FORWARDED.map((event) => ({
    event,
    // An error event without a listener would be thrown; the statement rejects with it anyway.
    forward: (...args: unknown[]) => {
      if (event !== "error" || this.listenerCount("error") > 0) this.emit(event, ...args);
    },
  }));
  /** The real client, while one is checked out. */
  held: PgClient | undefined;

  constructor(clients: PooledClients, tracker: SessionTracker) {
    super();
    this.#clients = clients;
    this.#checkout = new PoolCheckout(tracker, {
      pool: clients.pool,
      take: async () => this.#checkedOut(await clients.take()),
      giveBack: (watched, error) => this.#giveBack(watched, error),
      track: (watched) => clients.track(watched),
    });
  }

  get processID(): unknown {
    return this.held?.processID;
  }

  query(...args: unknown[]): unknown {
    const [first, ...others] = args;
    if (isSubmittable(first)) {
      this.#checkout.take().then(
        (watched) => submit(watched, first, others),
        (error: unknown) => first.handleError?.(error, undefined),
      );
      return first;
    }
    const call = queryCall(args);
    if (call === undefined) throw new TypeError("Client was passed a null or undefined query");
    const result = this.#checkout.run(this.#clients.statement(call), (watched) => statementOf(watched, call));
    return call.callback === undefined ? result : callBack(result, call.callback, null);
  }

  release(error?: unknown): void {
    this.#checkout.release(error);
  }

  #checkedOut(watched: WatchedClient): WatchedClient {
    this.held = watched.client;
    for (const { event, forward } of this.#forwarders) watched.client.on(event, forward);
    return watched;
  }

  #giveBack(watched: WatchedClient, error: unknown): void {
    for (const { event, forward } of this.#forwarders) watched.client.removeListener(event, forward);
    this.#clients.giveBack(watched, error);
    this.held = undefined;
  }
}

type Handler = (error: unknown, client?: PgClient, done?: (error?: unknown) => void) => void;

/** A pool whose `connect` hands out such clients. */
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
