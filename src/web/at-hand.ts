// The way of nearly every request: what the cache has at hand and is fresh is the answer, without a promise or a visit.
import type { Taker } from "../core/quick-look.ts";
import type { Exchange } from "./exchange.ts";
import { isFilling } from "./nesting.ts";
import type { RequestDirectives } from "./request-directives.ts";
import type { StoredValue } from "./stored.ts";
import type { VisitHost } from "./visit-state.ts";

/** Of all requests that were answered so. */
export const DONE = Promise.resolve();

/** One for all requests: it is done with one before it is asked for the next. */
export class AtHand<Request> implements Taker {
  readonly #host: VisitHost<Request>;
  #exchange: Exchange<Request> | undefined;
  #directives: RequestDirectives | undefined;
  #key = "";

  constructor(host: VisitHost<Request>) {
    this.#host = host;
  }

  /** Whether the request is answered. */
  answers(exchange: Exchange<Request>, directives: RequestDirectives, key: string): boolean {
    const { look, options } = this.#host;
    if (look === undefined || !isUsual(exchange, directives)) return false;
    if (isFilling(exchange.request.message, options.cache, key)) return false;
    this.#exchange = exchange;
    this.#directives = directives;
    this.#key = key;
    try {
      return look(key, this);
    } finally {
      // Of one that was not taken nothing is kept.
      this.#exchange = undefined;
      this.#directives = undefined;
    }
  }

  take(value: unknown): boolean {
    const exchange = this.#exchange;
    const directives = this.#directives;
    const key = this.#key;
    const stored = this.#host.prepared.of(key, value);
    if (exchange === undefined || directives === undefined || stored === undefined) return false;
    const now = this.#host.now();
    if (directives.use(stored, now) !== "fresh") return false;
    this.#host.told("hit", key, exchange.native);
    exchange.reply(stored.reply(exchange.request, value as StoredValue, now));
    return true;
  }
}

/** Whether all of a response is wanted, from wherever it comes. */
function isUsual({ request }: Exchange, directives: RequestDirectives): boolean {
  return request.method !== "HEAD" && !directives.onlyIfCached && request.header("range") === undefined;
}
