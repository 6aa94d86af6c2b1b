// Circuit breaker: after repeated failures calls fail fast, until a new connection or a single probe finds the store working.
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

/**
 * How a call failed. "loss": its connection was lost, which is one failure however many calls were on it. "attempt": it waited
 * for a connection, and the attempt to establish one failed. "wait": it waited in vain for a connection to replace one that was
 * lost, which is the same failure.
 */
export type FailureKind = "call" | "loss" | "attempt" | "wait";

/** Connections lost this close together are one failure: a server that ends takes the whole pool with it. */
const ONE_LOSS_MS = 100;

export class CircuitBreaker {
  readonly #options: BreakerOptions;
  readonly #clock: Clock;
  readonly #onState: (state: BreakerState) => void;
  #state: BreakerState = "closed";
  #failures = 0;
  #openedAt: number | undefined;
  #round = 0;
  #lostAt = Number.NEGATIVE_INFINITY;
  /** A new connection has closed the circuit, and no call has succeeded since. */
  #isOnTrial = false;
  /** Shared by all calls while the circuit is closed and no failure is counted. */
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
    this.#isOnTrial = false;
    if (pass.probe) this.#close();
  }

  fail(pass: Pass, kind: FailureKind = "call"): void {
    if (pass.round !== this.#round) return;
    if (!pass.probe && this.#isCounted(kind, pass)) return;
    this.#failures++;
    this.#closedPass = { probe: false, round: this.#round };
    if (pass.probe || this.#failures >= this.#options.failureThreshold) {
      this.#openedAt = this.#clock.now();
      this.#change("open");
    }
  }

  /**
   * A connection to the store was established: the circuit closes at once. If it opens again before any call has succeeded,
   * the store accepts connections and nothing more, and the next new connection does not close it.
   */
  connected(): void {
    if (this.#state === "closed" || this.#isOnTrial) return;
    this.#isOnTrial = true;
    this.#failures = 0;
    this.#close();
  }

  /** Whether the failure behind this one has been counted. */
  #isCounted(kind: FailureKind, pass: Pass): boolean {
    if (kind === "call") return false;
    // Calls that began after the failure have a pass of their own.
    if (kind === "attempt") return pass !== this.#closedPass;
    // No call has succeeded since the loss: it is among the failures, unless no call was on the connection.
    if (kind === "wait") return this.#failures > 0;
    const now = this.#clock.now();
    const isSame = now - this.#lostAt < ONE_LOSS_MS;
    if (!isSame) this.#lostAt = now;
    return isSame;
  }

  #close(): void {
    this.#openedAt = undefined;
    this.#change("closed");
  }

  #change(state: BreakerState): void {
    this.#state = state;
    this.#round++;
    this.#closedPass = { probe: false, round: this.#round };
    this.#onState(state);
  }
}
