// Delivers the notifications of one alert to one destination: one at a time, in order, with retries; nothing waits for it.
import type { Clock, Timer } from "../core/clock.ts";
import { AlertDeliveryError } from "../core/errors.ts";
import { toError } from "../core/events.ts";
import { redactError } from "../core/redact.ts";
import { DeliveryQueue, type Undelivered } from "./delivery-queue.ts";
import { DeliveryFailure, type Destination } from "./destination.ts";
import { type Outgoing, oneLine } from "./notification.ts";

const FIRST_DELAY_MS = 5_000;
const MAX_DELAY_MS = 300_000;

/** Then a message is abandoned; with the delays below, after about a quarter of an hour. */
export const MAX_ATTEMPTS = 10;

/**
 * Doubles with every failure up to five minutes. Half of it is random, so that many processes do not retry a recovering
 * destination all at once. Never shorter than what the destination asked for.
 */
export function retryDelayMs(failures: number, random: number, askedMs: number): number {
  const delay = Math.min(FIRST_DELAY_MS * 2 ** Math.max(0, failures - 1), MAX_DELAY_MS);
  return askedMs + delay * (0.5 + random / 2);
}

/** Totals since the manager was created. */
export interface DeliveryCounts {
  /** Messages accepted by a destination. */
  delivered: number;
  /** Failed attempts, including those that later succeeded on retry. */
  failedAttempts: number;
  /** Messages given up: permanently rejected, out of attempts, or undelivered at `stop()`. */
  abandoned: number;
  /** Messages that became obsolete before they were delivered. */
  superseded: number;
}

export interface DeliveryHost {
  readonly clock: Clock;
  readonly counts: DeliveryCounts;
  /** Timeout of one attempt. */
  readonly attemptMs: number;
  report(error: Error): void;
}

export class Delivery {
  readonly #destination: Destination;
  readonly #host: DeliveryHost;
  readonly #queue = new DeliveryQueue();
  #inFlight: Undelivered | undefined;
  #abort: AbortController | undefined;
  #retry: Timer | undefined;
  /** Consecutive failures, over all messages. */
  #failures = 0;
  #isClosing = false;
  #isGone = false;
  #running: Promise<void> | undefined;

  constructor(destination: Destination, host: DeliveryHost) {
    this.#destination = destination;
    this.#host = host;
  }

  get pending(): number {
    return this.#queue.size;
  }

  push(outgoing: Outgoing): void {
    if (this.#isGone) this.#host.counts.abandoned++;
    else this.#host.counts.superseded += this.#queue.add(outgoing, this.#inFlight);
    this.#start();
  }

  /** Attempts new messages once and abandons those that have already failed; resolves when done. */
  close(): Promise<void> {
    this.#isClosing = true;
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#abandon((each) => each !== this.#inFlight && each.attempts > 0);
    this.#start();
    return this.#running ?? Promise.resolve();
  }

  /** Aborts the attempt in flight and abandons the rest. */
  abort(): void {
    this.#abandon((each) => each !== this.#inFlight);
    this.#abort?.abort(new DeliveryFailure("stop() timed out", { retryable: false }));
  }

  #abandon(isAbandoned: (undelivered: Undelivered) => boolean): void {
    this.#host.counts.abandoned += this.#queue.drop(isAbandoned);
  }

  #start(): void {
    if (this.#running === undefined && this.#next() !== undefined) this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = this.#next()) await this.#attempt(next);
    this.#running = undefined;
  }

  #next(): Undelivered | undefined {
    return this.#retry === undefined ? this.#queue.first : undefined;
  }

  async #attempt(undelivered: Undelivered): Promise<void> {
    const { clock, counts, attemptMs } = this.#host;
    const abort = new AbortController();
    const timer = clock.after(attemptMs, () => {
      const message = `it did not answer within ${attemptMs / 1000} s`;
      abort.abort(new DeliveryFailure(message, { retryable: true }));
    });
    undelivered.attempts++;
    this.#inFlight = undelivered;
    this.#abort = abort;
    try {
      await this.#destination.send(undelivered.outgoing, abort.signal);
      counts.delivered++;
      this.#failures = 0;
      this.#queue.remove(undelivered);
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
    if (this.#queue.isSuperseded(undelivered)) {
      this.#queue.remove(undelivered);
      counts.superseded++;
    } else if (!failure.retryable || this.#isClosing || undelivered.attempts >= MAX_ATTEMPTS) {
      this.#abandon((each) => each === undelivered);
    }
    if (failure.gone) {
      this.#isGone = true;
      this.#abandon(() => true);
    }
    const delayMs = this.#scheduleRetry(failure);
    this.#host.report(this.#errorOf(undelivered, failure, delayMs));
  }

  /** The delay applies to the destination, whichever message is next. */
  #scheduleRetry({ retryable, retryAfterMs }: DeliveryFailure): number | undefined {
    if (!retryable || this.#isClosing || this.#queue.size === 0) return undefined;
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
    const attempt = `attempt ${undelivered.attempts} of ${MAX_ATTEMPTS}`;
    const next = delayMs === undefined ? "giving up" : `next attempt in ${Math.ceil(delayMs / 1000)} s`;
    return new AlertDeliveryError(`${what}: ${failure.message} (${attempt}; ${next})`, {
      operation: "deliver",
      ...(failure.cause === undefined ? {} : { cause: failure.cause }),
    });
  }
}

/** An unexpected error is not retried: it would only recur. */
function failureOf(thrown: unknown): DeliveryFailure {
  if (thrown instanceof DeliveryFailure) return thrown;
  return new DeliveryFailure(redactError(toError(thrown)).message, { retryable: false });
}
