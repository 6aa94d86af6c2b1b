// Passes the handler's response through unchanged, except for the status field, and reports its head.

import type { ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import type { Forwarded, StatusField } from "../protocol/cache-status.ts";

export class PassThrough implements Tap {
  readonly wantsWhole = false;
  readonly #statusField: StatusField;
  readonly #forwarded: Forwarded;
  readonly #onHead: ((response: ResponseHead) => Promise<unknown> | undefined) | undefined;

  /** `onHead` may return a promise that the end of the response waits for. */
  constructor(
    statusField: StatusField,
    forwarded: Forwarded,
    onHead?: (response: ResponseHead) => Promise<unknown> | undefined,
  ) {
    this.#statusField = statusField;
    this.#forwarded = forwarded;
    this.#onHead = onHead;
  }

  get wantsUnsent(): boolean {
    return this.#onHead !== undefined;
  }

  head(response: ResponseHead): Verdict {
    const settled = this.#onHead?.(response);
    const cacheStatus = this.#statusField.forwarded(this.#forwarded);
    const head = { ...response, headers: this.#statusField.add(response.headers, cacheStatus) };
    return settled === undefined ? { head, wantsBody: false } : { head, wantsBody: false, settled };
  }

  chunk(): boolean {
    return false;
  }

  end(): void {}
  abort(): void {}
}
