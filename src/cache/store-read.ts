// Callbacks of reads from a shared store. Classes instead of closures, since every read that the near tier cannot answer
// creates one.
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

/** For getOrSet, which continues with a load on a miss. */
export class FindCallback implements ReadCallback<Found | undefined> {
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
    this.#telemetry = telemetry;
    this.#key = key;
    this.#resolve = resolve;
    this.#goOn = goOn;
  }

  answered(found: Found | undefined): void {
    if (found?.fresh !== true) {
      this.#goOn({ found, failed: false });
      return;
    }
    this.#telemetry.storeHit(this.#key);
    this.#resolve(found.value);
  }

  failed(error: unknown): void {
    this.#telemetry.failed("getOrSet", toError(error));
    this.#goOn({ found: undefined, failed: true });
  }
}
