// What requests ask for: most have the same origin as the one before, and many the same target as one of the last.
import type { RequestFacts } from "../message/exchange.ts";
import { originOf } from "../protocol/url-key.ts";
import type { ReadyResponse } from "./ready-response.ts";

/** A key, and the response that was found under it last, ready to be sent. */
export interface RequestTarget {
  readonly key: string;
  prepared: ReadyResponse | undefined;
}

/** How many targets of one origin are remembered, and how long they may be. */
const MOST = 1_024;
const LONGEST = 256;

export class RequestTargets {
  #isSecure = false;
  #host = "";
  #origin = originOf(false, "");
  readonly #byTarget = new Map<string, RequestTarget>();

  of(request: RequestFacts): RequestTarget {
    const { isSecure, host, target } = request;
    if (host !== this.#host || isSecure !== this.#isSecure) this.#begin(isSecure, host);
    return this.#byTarget.get(target) ?? this.#add(target);
  }

  #begin(isSecure: boolean, host: string): void {
    this.#isSecure = isSecure;
    this.#host = host;
    this.#origin = originOf(isSecure, host);
    this.#byTarget.clear();
  }

  #add(target: string): RequestTarget {
    const address: RequestTarget = { key: this.#origin + target, prepared: undefined };
    if (target.length <= LONGEST) {
      if (this.#byTarget.size >= MOST) this.#byTarget.clear();
      this.#byTarget.set(target, address);
    }
    return address;
  }
}
