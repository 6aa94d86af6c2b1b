// Tells one destination of one alert: one message at a time, in order, again after a failure, and nothing waits for it.
import type { Clock, Timer } from "../core/clock.ts";
import { AlertDeliveryError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import { redactError } from "../core/redact.ts";
import { MOST_ATTEMPTS, retryDelayMs } from "./backoff.ts";
import { DeliveryQueue, type Undelivered } from "./delivery-queue.ts";
import { DeliveryFailure, type Destination } from "./destination.ts";
import { type Outgoing, oneLine } from "./notification.ts";

/** How deliveries have gone since the manager was made. */
export interface DeliveryCounts {
  /** Messages that a destination has accepted. */
  delivered: number;
  /** Attempts that failed, whatever came of the message later. */
  failedAttempts: number;
  /** Messages given up: refused for good, tried too often, or left over at `stop()`. */
  abandoned: number;
  /** Messages that had become pointless before they were delivered. */
  superseded: number;
}

export interface DeliveryHost {
  readonly clock: Clock;
  readonly counts: DeliveryCounts;
  /** How long an attempt may take. */
  readonly attemptMs: number;
  report(error: Error): void;
}

export class Delivery {
  readonly #destination: Destination;
  readonly #host: DeliveryHost;
  readonly #pending = new DeliveryQueue();
  #inFlight: Undelivered | undefined;
  #attempting: AbortController | undefined;
  #retry: Timer | undefined;
  /** Failures in a row, over all messages. */
  #failures = 0;
  #isClosing = false;
  #isGone = false;
  #running: Promise<void> | undefined;

  constructor(destination: Destination, host: DeliveryHost) {
    this.#destination = destination;
    this.#host = host;
  }

  get pending(): number {
    return this.#pending.size;
  }

  push(outgoing: Outgoing): void {
    if (this.#isGone) this.#host.counts.abandoned++;
    else this.#host.counts.superseded += this.#pending.add(outgoing, this.#inFlight);
    this.#start();
  }

  /** Sends what was never tried, once, and ends; what has failed before is given up. */
  close(): Promise<void> {
    this.#isClosing = true;
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#abandon((each) => each !== this.#inFlight && each.attempts > 0);
    this.#start();
    return this.#running ?? Promise.resolve();
  }

  /** Ends what is in flight and gives up the rest. */
  abort(): void {
    this.#abandon((each) => each !== this.#inFlight);
    this.#attempting?.abort(new DeliveryFailure("stop() waits no longer", { retryable: false }));
  }

  #abandon(isAbandoned: (undelivered: Undelivered) => boolean): void {
    this.#host.counts.abandoned += this.#pending.drop(isAbandoned);
  }

  #start(): void {
    if (this.#running === undefined && this.#next() !== undefined) this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = this.#next()) await this.#attempt(next);
    this.#running = undefined;
  }

  #next(): Undelivered | undefined {
    return this.#retry === undefined ? this.#pending.first : undefined;
  }

  async #attempt(undelivered: Undelivered): Promise<void> {
    const { clock, counts, attemptMs } = this.#host;
    const attempting = new AbortController();
    const timer = clock.after(attemptMs, () => {
      const message = `it did not answer within ${attemptMs / 1000} s`;
      attempting.abort(new DeliveryFailure(message, { retryable: true }));
    });
    undelivered.attempts++;
    this.#inFlight = undelivered;
    this.#attempting = attempting;
    try {
      await this.#destination.send(undelivered.outgoing, attempting.signal);
      counts.delivered++;
      this.#failures = 0;
      this.#pending.remove(undelivered);
    } catch (error) {
      this.#failed(undelivered, failureOf(error));
    } finally {
      timer.cancel();
      this.#inFlight = undefined;
    }
  }

  #failed(undelivered: Undelivered, failure: DeliveryFailure): void {
    const { counts } = this.#host;
    counts.failedAttempts++;
    this.#failures++;
    if (this.#pending.isOvertaken(undelivered)) {
      this.#pending.remove(undelivered);
      counts.superseded++;
    } else if (!failure.retryable || this.#isClosing || undelivered.attempts >= MOST_ATTEMPTS) {
      this.#abandon((each) => each === undelivered);
    }
    if (failure.gone) {
      this.#isGone = true;
      this.#abandon(() => true);
    }
    const delayMs = this.#scheduleRetry(failure);
    this.#host.report(this.#errorOf(undelivered, failure, delayMs));
  }

  /** A destination that failed is left alone for a while, whichever message is next. */
  #scheduleRetry({ retryable, retryAfterMs }: DeliveryFailure): number | undefined {
    if (!retryable || this.#isClosing || this.#pending.size === 0) return undefined;
    const { clock } = this.#host;
    const delayMs = retryDelayMs(this.#failures, clock.random(), retryAfterMs);
    this.#retry = clock.after(delayMs, () => {
      this.#retry = undefined;
      this.#start();
    });
    return delayMs;
  }

  #errorOf(
    undelivered: Undelivered,
    failure: DeliveryFailure,
    delayMs: number | undefined,
  ): AlertDeliveryError {
    const { name, status } = undelivered.outgoing.notification.data;
    const what = `the alert "${oneLine(name)}" (${status}) could not be delivered to ${this.#destination.label}`;
    const attempt = `attempt ${undelivered.attempts} of ${MOST_ATTEMPTS}`;
    const next =
      delayMs === undefined ? "it is given up" : `the next one follows in ${Math.ceil(delayMs / 1000)} s`;
    return new AlertDeliveryError(`${what}: ${failure.message} (${attempt}; ${next})`, {
      operation: "deliver",
      ...(failure.cause === undefined ? {} : { cause: failure.cause }),
    });
  }
}

/** What no destination should throw is not tried again: it would only come back. */
function failureOf(thrown: unknown): DeliveryFailure {
  if (thrown instanceof DeliveryFailure) return thrown;
  return new DeliveryFailure(redactError(toError(thrown)).message, { retryable: false });
}
