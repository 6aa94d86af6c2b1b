// Counts and times a getOrSet call that was not a hit at once.
import type { FunctionRecord } from "../core/function-record.ts";
import type { LoadObserver } from "../core/loading/loader.ts";
import type { Loaded } from "../core/loading/waiting-call.ts";
import type { Timing } from "../metrics/recording/operation-record.ts";
import type { Telemetry } from "../metrics/recording/telemetry.ts";

export class CountedLoad implements LoadObserver {
  readonly #telemetry: Telemetry;
  readonly #key: string;
  readonly #by: FunctionRecord | undefined;
  readonly #timing: Timing | undefined;

  constructor(telemetry: Telemetry, key: string, by: FunctionRecord | undefined) {
    this.#telemetry = telemetry;
    this.#key = key;
    this.#by = by;
    this.#timing = telemetry.start("getOrSet");
  }

  ended(outcome: Loaded | undefined): void {
    this.#telemetry.loaded(this.#key, outcome, this.#by);
    this.#telemetry.finish("getOrSet", this.#timing);
  }
}
