// Where alerts are told: the contract between the queue that retries and the ways of delivery.
import type { Outgoing } from "./notification.ts";

export interface Destination {
  /** For messages; holds no secret. */
  readonly label: string;
  /**
   * One attempt. Rejects with DeliveryFailure, or with anything else for what should not happen. Ends at once, with
   * its connection, when the signal aborts.
   */
  send(outgoing: Outgoing, signal: AbortSignal): Promise<void>;
}

export interface FailureDetails {
  /** Whether another attempt may do better. */
  readonly retryable: boolean;
  /** How long the destination asked to be left alone. */
  readonly retryAfterMs?: number;
  /** The destination wants no message ever again. */
  readonly gone?: boolean;
  readonly cause?: unknown;
}

/** Why an attempt failed, in words that may be shown. */
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
