// Says when a shared store starts to fail and when it works again, as process warnings: for applications that do not listen to
// `error`, whose cached functions would otherwise just become slow.
import type { Clock } from "../clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../errors.ts";

export interface NoticeOptions {
  readonly clock: Clock;
  /** Whether somebody learns of failures anyway. */
  readonly isHeard: () => boolean;
  /** See Backend: then a call that succeeds says nothing about the part that failed. */
  readonly answersInPart: () => boolean;
}

const TYPE = "XCacheWarning";
/** A store of several parts works again when no call has failed for this long. */
const QUIET_MS = 10_000;

export class StoreNotice {
  /** Checked after every call that succeeds. */
  isFailing = false;
  readonly #options: NoticeOptions;
  #since = 0;
  #lastAt = 0;
  /** Whether a warning was given of this failure. */
  #isSaid = false;

  constructor(options: NoticeOptions) {
    this.#options = options;
  }

  /** A call failed, or an attempt to connect, in a way that the next one is likely to. */
  failed(error: XCacheError): void {
    if (!concernsStore(error)) return;
    const { clock, isHeard } = this.#options;
    this.#lastAt = clock.now();
    if (this.isFailing) return;
    this.isFailing = true;
    this.#since = this.#lastAt;
    this.#isSaid = !isHeard();
    if (!this.#isSaid) return;
    process.emitWarning(`the store is failing: ${sentence(error.message)} Calls continue without it.`, {
      type: TYPE,
      code: "XCACHE_STORE_FAILED",
      detail: `${error.hint} Listen to the cache's "error" event to handle this yourself.`,
    });
  }

  /** A call succeeded. */
  worked(): void {
    const { clock, answersInPart } = this.#options;
    const now = clock.now();
    if (!this.isFailing || (now - this.#lastAt < QUIET_MS && answersInPart())) return;
    this.isFailing = false;
    if (!this.#isSaid) return;
    const seconds = (now - this.#since) / 1_000;
    process.emitWarning(`the store is back after ${seconds.toFixed(1)} s`, {
      type: TYPE,
      code: "XCACHE_STORE_BACK",
    });
  }
}

/** Not an error of our own: a disconnected cache, a record that too many change at once. */
function concernsStore(error: XCacheError): boolean {
  const isKnown = error instanceof ConnectionError || error instanceof OperationTimeoutError;
  return error.code !== "DISCONNECTED" && (isKnown || error.cause !== undefined);
}

const sentence = (text: string): string => (text.endsWith(".") ? text : `${text}.`);
