// What a request says about caching (RFC 9111, 5.2.1), as far as it is obeyed.

import type { RequestFacts } from "../message/exchange.ts";
import { type Directives, NO_DIRECTIVES, parseCacheControl } from "../protocol/cache-control.ts";
import type { ReadyResponse } from "./ready-response.ts";

/** How a stored response may be used: as it is, at once while it is refreshed, or not before the handler was asked. */
export type Use = "fresh" | "while-revalidating" | "not";

export class RequestDirectives {
  readonly #given: Directives;
  /** Whether the client may ask for more than is stored. */
  readonly #isObeyed: boolean;

  constructor(given: Directives, isObeyed: boolean) {
    this.#given = given;
    this.#isObeyed = isObeyed;
  }

  static of(request: RequestFacts, isObeyed: boolean): RequestDirectives {
    if (request.isPlain) return SAYS_NOTHING;
    const field = request.header("cache-control");
    return field === undefined ? SAYS_NOTHING : new RequestDirectives(parseCacheControl(field), isObeyed);
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

  /** max-stale without a number means any age. What must be revalidated stays so. */
  #acceptsStale({ head }: ReadyResponse, staleMs: number): boolean {
    if (head.mustRevalidate || !this.#given.has("max-stale")) return false;
    const isAny = this.#given.argument("max-stale") === undefined;
    return isAny || staleMs <= (this.#given.seconds("max-stale") ?? 0) * 1000;
  }
}

const SAYS_NOTHING = new RequestDirectives(NO_DIRECTIVES, false);
