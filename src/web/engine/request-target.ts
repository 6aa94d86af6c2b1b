// Cached keys of recent request targets: most requests repeat the previous origin, and many a recent target.
import type { RequestInfo } from "../message/exchange.ts";
import { originOf } from "../protocol/url-key.ts";
import type { ReadyResponse } from "./ready-response.ts";

/** A key, and the ready response last found under it. */
export interface RequestTarget {
  readonly key: string;
  ready: ReadyResponse | undefined;
}

/** Limits on the remembered targets of one origin: their number and their length. */
const MAX_TARGETS = 1_024;
const MAX_TARGET_LENGTH = 256;

export class RequestTargets {
  #isSecure = false;
  #host = "";
  #selectors = "";
  #origin = originOf(false, "");
  readonly #byTarget = new Map<string, RequestTarget>();

  of(request: RequestInfo): RequestTarget {
    const { target } = request;
    if (
      request.host !== this.#host ||
      request.isSecure !== this.#isSecure ||
      request.selectors !== this.#selectors
    )
      this.#reset(request);
    return this.#byTarget.get(target) ?? this.#add(target);
  }

  #reset({ isSecure, host, selectors }: RequestInfo): void {
    this.#isSecure = isSecure;
    this.#host = host;
    this.#selectors = selectors;
    this.#origin = originOf(isSecure, host, selectors);
    this.#byTarget.clear();
  }

  #add(target: string): RequestTarget {
    const entry: RequestTarget = { key: this.#origin + target, ready: undefined };
    if (target.length <= MAX_TARGET_LENGTH) {
      if (this.#byTarget.size >= MAX_TARGETS) this.#byTarget.clear();
      this.#byTarget.set(target, entry);
    }
    return entry;
  }
}
