// Commands that wait for earlier ones to be answered before they are sent: a connection has a limited number of bytes in flight.
import { BackendError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { asRefusal } from "../../core/resilience/store-failure.ts";

/** Bytes of requests in flight, beyond which further commands wait. */
export const MOST_IN_FLIGHT = 8 * 1024 * 1024;
/** Bytes that may wait; more are refused. */
const MOST_WAITING = 128 * 1024 * 1024;
/** How long a command waits at most, as a multiple of operation_timeout; its own deadline begins when it is sent. */
const LONGEST_WAIT = 10;

/** A command that was not sent. */
export interface Unsent<C> {
  /** When it was to be sent. */
  readonly since: number;
  readonly bytes: number;
  send(connection: C): void;
  fail(error: XCacheError): void;
}

export class Backlog<C, U extends Unsent<C> = Unsent<C>> {
  readonly #limitMs: number;
  #waiting: U[] = [];
  #first = 0;
  #bytes = 0;

  constructor(operationTimeoutMs: number) {
    this.#limitMs = operationTimeoutMs * LONGEST_WAIT;
  }

  get length(): number {
    return this.#waiting.length - this.#first;
  }

  add(command: U): void {
    if (this.#bytes + command.bytes > MOST_WAITING) {
      command.fail(overloaded());
      return;
    }
    this.#waiting.push(command);
    this.#bytes += command.bytes;
  }

  /** Takes the oldest; those that have waited for too long fail. */
  take(now: number): U | undefined {
    for (;;) {
      const command = this.#waiting[this.#first];
      if (command === undefined) return undefined;
      this.#waiting[this.#first++] = undefined as never;
      this.#bytes -= command.bytes;
      if (this.#first === this.#waiting.length) this.#clear();
      if (now - command.since < this.#limitMs) return command;
      command.fail(waitedTooLong(this.#limitMs));
    }
  }

  /** Takes all. */
  close(): readonly U[] {
    const waiting = this.#waiting.slice(this.#first);
    this.#clear();
    this.#bytes = 0;
    return waiting;
  }

  #clear(): void {
    this.#waiting = [];
    this.#first = 0;
  }
}

const HINT = "Start fewer calls at once, or raise pool_size.";

function overloaded(): BackendError {
  const message = `${MOST_WAITING / 1024 / 1024} MB of commands already wait to be sent over this connection`;
  return asRefusal(new BackendError("STORE_FAILED", message, { hint: HINT }));
}

function waitedTooLong(limitMs: number): OperationTimeoutError {
  const message = `the command waited ${limitMs / 1_000} s behind others and was not sent`;
  return asRefusal(new OperationTimeoutError(message, { hint: HINT }));
}
