// Lets a response pass as it is, with a word of what the cache did, and tells of its status.

import type { ResponseHead, Tap, Verdict } from "../message/exchange.ts";
import type { Forwarded, StatusField } from "../protocol/cache-status.ts";

export class PassThrough implements Tap {
  readonly wantsWhole = false;
  readonly #statusField: StatusField;
  readonly #forwarded: Forwarded;
  readonly #onHead: ((response: ResponseHead) => Promise<unknown> | undefined) | undefined;

  /** `onHead` returns what the response has to wait for before it ends. */
  constructor(
    statusField: StatusField,
    forwarded: Forwarded,
    onHead?: (response: ResponseHead) => Promise<unknown> | undefined,
  ) {
    this.#statusField = statusField;
    this.#forwarded = forwarded;
    this.#onHead = onHead;
  }

  head(response: ResponseHead): Verdict {
    const settled = this.#onHead?.(response);
    const said = this.#statusField.forwarded(this.#forwarded);
    const head = { ...response, headers: this.#statusField.add(response.headers, said) };
    return settled === undefined ? { head, wantsBody: false } : { head, wantsBody: false, settled };
  }

  chunk(): boolean {
    return false;
  }

  end(): void {}
  abort(): void {}
}
