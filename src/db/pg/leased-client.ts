// What a library gets for a client of its pool: a client is taken from the pool only when a statement needs one.
import { EventEmitter } from "node:events";
import type { SessionTracker } from "../../core/db-session.ts";
import { PoolCheckout } from "../tracking/pool-checkout.ts";
import { callBack, statementOf, submit, type WatchedClient } from "./client.ts";
import { isSubmittable, type PgClient } from "./library.ts";
import type { PooledClients } from "./pooled-clients.ts";
import { queryCall } from "./query-call.ts";

const FORWARDED = ["error", "end", "notice", "notification", "drain"];

/** Used by libraries that take a client for each statement: they would take one for an answer of the cache as well. */
export class LeasedClient extends EventEmitter {
  readonly #clients: PooledClients;
  readonly #lease: PoolCheckout<WatchedClient>;
  readonly #forwarders = FORWARDED.map((event) => ({
    event,
    // An error that nobody listens to would be thrown; the statement is told of it anyway.
    forward: (...args: unknown[]) => {
      if (event !== "error" || this.listenerCount("error") > 0) this.emit(event, ...args);
    },
  }));
  /** The client itself, while it is held. */
  held: PgClient | undefined;

  constructor(clients: PooledClients, tracker: SessionTracker) {
    super();
    this.#clients = clients;
    this.#lease = new PoolCheckout(tracker, {
      pool: clients.pool,
      take: async () => this.#hold(await clients.take()),
      giveBack: (watched, error) => this.#letGo(watched, error),
      track: (watched) => clients.track(watched),
    });
  }

  get processID(): unknown {
    return this.held?.processID;
  }

  query(...args: unknown[]): unknown {
    const [first, ...others] = args;
    if (isSubmittable(first)) {
      this.#lease.take().then(
        (watched) => submit(watched, first, others),
        (error: unknown) => first.handleError?.(error, undefined),
      );
      return first;
    }
    const call = queryCall(args);
    if (call === undefined) throw new TypeError("Client was passed a null or undefined query");
    const result = this.#lease.run(this.#clients.statement(call), (watched) => statementOf(watched, call));
    return call.callback === undefined ? result : callBack(result, call.callback, null);
  }

  release(error?: unknown): void {
    this.#lease.release(error);
  }

  #hold(watched: WatchedClient): WatchedClient {
    this.held = watched.client;
    for (const { event, forward } of this.#forwarders) watched.client.on(event, forward);
    return watched;
  }

  #letGo(watched: WatchedClient, error: unknown): void {
    for (const { event, forward } of this.#forwarders) watched.client.removeListener(event, forward);
    this.#clients.giveBack(watched, error);
    this.held = undefined;
  }
}
