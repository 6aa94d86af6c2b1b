// Callbacks of reads from a shared store. Classes instead of closures, since every read that the near tier cannot answer
// creates one.
import { CallerContext } from "../core/async-context.ts";
import { toError } from "../core/events.ts";
import type { StoreLookup } from "../core/loading/waiting-call.ts";
import type { Found, ReadCallback } from "../core/namespace.ts";
import type { Telemetry } from "../metrics/recording/telemetry.ts";

/** For `get`. */
export class GetCallback implements ReadCallback<unknown> {
  readonly #telemetry: Telemetry;
  readonly #key: string;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    telemetry: Telemetry,
    key: string,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.#telemetry = telemetry;
    this.#key = key;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  answered(value: unknown): void {
    this.#telemetry.looked(this.#key, value !== undefined);
    this.#resolve(value);
  }

  failed(error: unknown): void {
    this.#reject(this.#telemetry.failedCall("get", error));
  }
}

/** For `get` with listeners, which run in the caller's context. */
export class ObservedGetCallback extends GetCallback {
  readonly #context = new CallerContext();

  override answered(value: unknown): void {
    this.#context.runInAsyncScope(super.answered, this, value);
  }
}

/** For getOrSet, which on a miss continues with a load, in its caller's context. */
export class FindCallback extends CallerContext implements ReadCallback<Found | undefined> {
  readonly #telemetry: Telemetry;
  readonly #key: string;
  readonly #resolve: (value: unknown) => void;
  readonly #goOn: (look: StoreLookup) => void;

  constructor(
    telemetry: Telemetry,
    key: string,
    resolve: (value: unknown) => void,
    goOn: (look: StoreLookup) => void,
  ) {
    super();
    this.#telemetry = telemetry;
    this.#key = key;
    this.#resolve = resolve;
    this.#goOn = goOn;
  }

  answered(found: Found | undefined): void {
    if (found?.fresh !== true) {
      this.runInAsyncScope(this.#goOn, undefined, { found, failed: false });
      return;
    }
    const telemetry = this.#telemetry;
    if (telemetry.events.on.hit === undefined) telemetry.storeHit(this.#key);
    else this.runInAsyncScope(() => telemetry.storeHit(this.#key));
    this.#resolve(found.value);
  }

  failed(error: unknown): void {
    this.runInAsyncScope(() => {
      this.#telemetry.failed("getOrSet", toError(error));
      this.#goOn({ found: undefined, failed: true });
    });
  }
}
