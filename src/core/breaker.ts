// Circuit breaker: after repeated failures calls fail fast, until a single probe finds the store working again.
import type { Clock } from "./clock.ts";
import { CircuitOpenError } from "./errors.ts";

export type BreakerState = "closed" | "open" | "half_open";

export interface BreakerOptions {
  /** Failures in a row that open the circuit. */
  readonly failureThreshold: number;
  /** Seconds until a probe is let through. */
  readonly resetTimeout: number;
}

/** Permission for one call to the store; report exactly one outcome with it. */
export interface Pass {
  readonly probe: boolean;
  /** Passes issued before the state last changed no longer count. */
  readonly round: number;
}

export class CircuitBreaker {
  readonly #options: BreakerOptions;
  readonly #clock: Clock;
  readonly #onState: (state: BreakerState) => void;
  #state: BreakerState = "closed";
  #failures = 0;
  #openedAt: number | undefined;
  #round = 0;
  /** Shared by all calls while the circuit is closed. */
  #closedPass: Pass = { probe: false, round: 0 };

  constructor(options: BreakerOptions, clock: Clock, onState: (state: BreakerState) => void = () => {}) {
    this.#options = options;
    this.#clock = clock;
    this.#onState = onState;
  }

  get state(): BreakerState {
    return this.#state;
  }

  get failures(): number {
    return this.#failures;
  }

  /** When it opened, in milliseconds since the epoch. */
  get openedAt(): number | undefined {
    return this.#openedAt;
  }

  /** When the next probe is allowed, in milliseconds since the epoch. */
  get nextProbeAt(): number | undefined {
    return this.#openedAt === undefined ? undefined : this.#openedAt + this.#options.resetTimeout * 1000;
  }

  /** Throws CircuitOpenError unless a call is allowed now. */
  enter(operation: string): Pass {
    if (this.#state === "closed") return this.#closedPass;
    const due = this.nextProbeAt ?? 0;
    if (this.#state === "open" && this.#clock.now() >= due) {
      this.#change("half_open");
      return { probe: true, round: this.#round };
    }
    const wait = Math.max(0, due - this.#clock.now()) / 1000;
    throw new CircuitOpenError(
      this.#state === "half_open"
        ? "the circuit breaker is half open and its probe is still in flight"
        : `the circuit breaker is open after ${this.#failures} failures; next probe in ${wait.toFixed(1)} s`,
      { operation },
    );
  }

  succeed(pass: Pass): void {
    if (pass.round !== this.#round) return;
    this.#failures = 0;
    if (pass.probe) {
      this.#openedAt = undefined;
      this.#change("closed");
    }
  }

  fail(pass: Pass): void {
    if (pass.round !== this.#round) return;
    this.#failures++;
    if (pass.probe || this.#failures >= this.#options.failureThreshold) {
      this.#openedAt = this.#clock.now();
      this.#change("open");
    }
  }

  #change(state: BreakerState): void {
    this.#state = state;
    this.#round++;
    this.#closedPass = { probe: false, round: this.#round };
    this.#onState(state);
  }
}
