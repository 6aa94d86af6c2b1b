// Commands that wait for earlier ones to be answered before they are sent: a connection has a limited number of bytes in flight.
import { BackendError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { asRefusal } from "../../core/resilience/store-failure.ts";
import type { Awaiting, ReplyQueue } from "./reply-queue.ts";

/** Bytes of requests in flight, beyond which further commands wait. */
const MOST_IN_FLIGHT = 8 * 1024 * 1024;
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

export class Backlog<C, A extends Awaiting, U extends Unsent<C> = Unsent<C>> {
  /** Whether commands that had to wait are being sent. */
  isDraining = false;
  /** The latest command that had to wait, until it is answered. */
  lastWaited: A | undefined;
  readonly #pending: ReplyQueue<A>;
  readonly #limitMs: number;
  #waiting: U[] = [];
  #first = 0;
  #bytes = 0;

  constructor(pending: ReplyQueue<A>, operationTimeoutMs: number) {
    this.#pending = pending;
    this.#limitMs = operationTimeoutMs * LONGEST_WAIT;
  }

  get length(): number {
    return this.#waiting.length - this.#first;
  }

  /** Whether a command has to wait now. */
  get isFull(): boolean {
    return this.#pending.bytes >= MOST_IN_FLIGHT || (this.#waiting.length > 0 && !this.isDraining);
  }

  /** Whether calls wait for data that is on its way. */
  isTransferring(now: number): boolean {
    const isBehind = this.length > 0 || this.lastWaited !== undefined;
    return (isBehind && this.#pending.length > 0) || this.#pending.isExtended(now);
  }

  add(command: U): void {
    if (this.#bytes + command.bytes > MOST_WAITING) {
      command.fail(overloaded());
      return;
    }
    this.#waiting.push(command);
    this.#bytes += command.bytes;
  }

  /** Sends what had to wait, as far as there is room; `sent` is called after each. */
  drain(connection: C, now: number, sent: () => void): void {
    this.isDraining = true;
    while (this.#pending.bytes < MOST_IN_FLIGHT) {
      const next = this.#take(now);
      if (next === undefined) break;
      next.send(connection);
      sent();
    }
    this.isDraining = false;
  }

  /** Takes the oldest; those that have waited for too long fail. */
  #take(now: number): U | undefined {
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
    this.lastWaited = undefined;
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
