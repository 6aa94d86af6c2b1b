// The cache directives of a request (RFC 9111, 5.2.1), as far as the options obey them.

import type { RequestInfo } from "../message/exchange.ts";
import { type Directives, NO_DIRECTIVES, parseCacheControl } from "../protocol/cache-control.ts";
import type { ReadyResponse } from "./ready-response.ts";

/** How a stored response may be used: as it is, stale while it is refreshed, or only after revalidation. */
export type Use = "fresh" | "while-revalidating" | "not";

export class RequestDirectives {
  readonly #given: Directives;
  /** Whether the options let clients influence freshness. */
  readonly #isObeyed: boolean;

  constructor(given: Directives, isObeyed: boolean) {
    this.#given = given;
    this.#isObeyed = isObeyed;
  }

  static of(request: RequestInfo, isObeyed: boolean): RequestDirectives {
    if (request.isPlain) return NONE;
    const field = request.header("cache-control");
    return field === undefined ? NONE : new RequestDirectives(parseCacheControl(field), isObeyed);
  }

  get noStore(): boolean {
    return this.#given.has("no-store");
  }

  get onlyIfCached(): boolean {
    return this.#given.has("only-if-cached");
  }

  use(stored: ReadyResponse, now: number): Use {
    const freshMs = stored.freshMs(now);
    if (this.#isObeyed) {
      if (this.#given.has("no-cache")) return "not";
      const maxAge = this.#given.seconds("max-age");
      if (maxAge !== undefined && stored.ageMs(now) > maxAge * 1000) return "not";
      const minFresh = this.#given.seconds("min-fresh");
      if (minFresh !== undefined && freshMs < minFresh * 1000) return "not";
      if (freshMs <= 0 && this.#acceptsStale(stored, -freshMs)) return "fresh";
    }
    if (freshMs > 0) return "fresh";
    const { mustRevalidate, staleWhileRevalidateMs } = stored.head;
    return (!mustRevalidate || staleWhileRevalidateMs > 0) && -freshMs < staleWhileRevalidateMs
      ? "while-revalidating"
      : "not";
  }

  /** max-stale without a number accepts any staleness, but never overrides must-revalidate. */
  #acceptsStale({ head }: ReadyResponse, staleMs: number): boolean {
    if (head.mustRevalidate || !this.#given.has("max-stale")) return false;
    const isAny = this.#given.argument("max-stale") === undefined;
    return isAny || staleMs <= (this.#given.seconds("max-stale") ?? 0) * 1000;
  }
}

const NONE = new RequestDirectives(NO_DIRECTIVES, false);
