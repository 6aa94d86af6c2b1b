// The contract between the retrying delivery and its destinations.
import type { Outgoing } from "./notification.ts";

export interface Destination {
  /** For error messages; contains no secret. */
  readonly label: string;
  /**
   * One attempt. Rejects with DeliveryFailure; any other error is unexpected. When the signal aborts, it ends at once and
   * closes its connection.
   */
  send(outgoing: Outgoing, signal: AbortSignal): Promise<void>;
}

export interface FailureDetails {
  /** Whether another attempt may succeed. */
  readonly retryable: boolean;
  /** The delay the destination asked for. */
  readonly retryAfterMs?: number;
  /** The destination wants no further messages. */
  readonly gone?: boolean;
  readonly cause?: unknown;
}

/** A destination whose code is loaded for the first message: most programs send none. */
export class LazyDestination implements Destination {
  readonly label: string;
  readonly #load: () => Promise<Destination>;
  #loaded: Destination | undefined;

  constructor(label: string, load: () => Promise<Destination>) {
    this.label = label;
    this.#load = load;
  }

  async send(outgoing: Outgoing, signal: AbortSignal): Promise<void> {
    this.#loaded ??= await this.#load().catch((cause: unknown) => {
      throw new DeliveryFailure("its code could not be loaded", { retryable: true, cause });
    });
    if (signal.aborted) throw signal.reason as Error;
    await this.#loaded.send(outgoing, signal);
  }
}

/** Why an attempt failed; the message contains no secret. */
export class DeliveryFailure extends Error {
  readonly retryable: boolean;
  readonly retryAfterMs: number;
  readonly gone: boolean;

  constructor(message: string, { retryable, retryAfterMs = 0, gone = false, cause }: FailureDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "DeliveryFailure";
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.gone = gone;
  }
}
