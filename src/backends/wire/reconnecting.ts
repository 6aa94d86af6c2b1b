// A connection that is opened when first needed and reopened with back-off when lost; calls wait for it until their deadline.
import type { Failed } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import { disconnected } from "./connection-error.ts";

/** One connection, from its greeting until it breaks. */
export interface OpenConnection {
  /** The server's address, for messages. */
  readonly name: string;
  readonly isOpen: boolean;
  destroy(reason: XCacheError): void;
}

/** What a connection reports to its owner, and how the owner ends it. */
export interface ConnectionOwner {
  /** Called once, after everything pending was rejected. */
  closed(error: XCacheError): void;
  /** Aborting it ends the connection, open or still opening; its reason is an XCacheError. */
  readonly signal?: AbortSignal;
}

export interface ReconnectingHost<C> {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** Opens a connection and prepares it; no call uses the connection before this resolves. */
  open(owner: Required<ConnectionOwner>): Promise<C>;
  /** A connection is ready. */
  up?(): void;
  /** The connection was lost, or an attempt failed. */
  down?(error: XCacheError, lost: C | undefined): void;
}

interface WaitingCall<C> {
  readonly due: number;
  readonly run: (connection: C) => void;
  readonly failed: Failed;
}

/** The back-off doubles from the first pause to the longest. A connection that lasts no longer than that is one more failure. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
/** A failover may renew a connection this often: by the old server, the sentinels, and the first connection to the new server. */
const IMMEDIATE_RENEWALS = 3;
/** The count restarts after this long without a renewal: longer than two connections that renew each other can pause. */
const RENEWALS_APART_MS = 5_000;

export class ReconnectingConnection<C extends OpenConnection> {
  readonly #host: ReconnectingHost<C>;
  #connection: C | undefined;
  #waiting: WaitingCall<C>[] = [];
  /** Fires when the first waiting call is due. */
  #waitTimer: Timer | undefined;
  #waitTimerDue = Number.POSITIVE_INFINITY;
  #attempt: Promise<void> | undefined;
  /** Ends the current attempt, and the connection that came of it. */
  #stop: AbortController | undefined;
  #failures = 0;
  #failingSince = Number.POSITIVE_INFINITY;
  #lastError: XCacheError | undefined;
  #pause: Timer | undefined;
  #upSince = 0;
  #renewals = 0;
  #renewedAt = 0;
  #closed = false;

  constructor(host: ReconnectingHost<C>) {
    this.#host = host;
  }

  /** The connection, while it is open and prepared. */
  get connection(): C | undefined {
    return this.#connection;
  }

  /** How many calls wait for a connection. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether attempts have failed for longer than any call would wait. */
  get isUnreachable(): boolean {
    return this.#host.clock.now() - this.#failingSince >= this.#host.operationTimeoutMs;
  }

  /** Why the latest attempt failed or the connection was lost; undefined while connected. */
  get lastError(): XCacheError | undefined {
    return this.#lastError;
  }

  /** Calls `run` once connected, or `failed` if that takes longer than `due`. Default: operation_timeout from now. */
  whenUp(run: (connection: C) => void, failed: Failed, due?: number): void {
    if (this.#connection !== undefined) {
      run(this.#connection);
      return;
    }
    // During a pause nothing can be sent, and while attempts keep failing no call waits for one: both get the last error.
    const reason = this.#pause !== undefined || this.isUnreachable ? this.#lastError : undefined;
    if (this.#closed || reason !== undefined) {
      failed(reason ?? disconnected());
      return;
    }
    const { clock, operationTimeoutMs } = this.#host;
    const call = { due: due ?? clock.now() + operationTimeoutMs, run, failed };
    this.#waiting.push(call);
    this.#wakeAt(call.due);
    this.#begin().catch(() => {});
  }

  /** Resolves when connected; rejects when the attempt fails. */
  async connect(): Promise<void> {
    if (this.#connection !== undefined) return;
    await this.#begin();
  }

  /**
   * Gives up the connection, or the attempt at one, and opens another at once; waiting calls keep waiting. Too many renewals
   * in a short time count as failures and pause: an address that leads to two servers would otherwise renew forever.
   */
  renew(reason: XCacheError): void {
    this.#countRenewal();
    if (!this.#isFlapping) {
      this.#failures = 0;
      this.#failingSince = Number.POSITIVE_INFINITY;
    }
    if (this.#attempt !== undefined) {
      this.#stop?.abort(reason);
      return;
    }
    if (this.#connection === undefined && this.#pause === undefined) return;
    this.#connection?.destroy(reason);
    if (!this.#isFlapping) this.#begin().catch(() => {});
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pause?.cancel();
    const reason = disconnected();
    this.#stop?.abort(reason);
    this.#connection?.destroy(reason);
    this.#connection = undefined;
    this.#rejectWaiting(reason);
  }

  #countRenewal(): void {
    const now = this.#host.clock.now();
    this.#renewals = now - this.#renewedAt > RENEWALS_APART_MS ? 1 : this.#renewals + 1;
    this.#renewedAt = now;
  }

  get #isFlapping(): boolean {
    return this.#renewals > IMMEDIATE_RENEWALS;
  }

  #wakeAt(due: number): void {
    if (due >= this.#waitTimerDue) return;
    this.#waitTimer?.cancel();
    this.#waitTimerDue = due;
    this.#waitTimer = this.#host.clock.after(due - this.#host.clock.now(), () => this.#rejectLate());
  }

  #begin(): Promise<void> {
    if (this.#closed) return Promise.reject(disconnected());
    this.#pause?.cancel();
    this.#pause = undefined;
    if (this.#attempt !== undefined) return this.#attempt;
    const attempt = this.#open().finally(() => {
      if (this.#attempt === attempt) this.#attempt = undefined;
    });
    this.#attempt = attempt;
    return attempt;
  }

  async #open(): Promise<void> {
    for (;;) {
      const stop = new AbortController();
      const { signal } = stop;
      this.#stop = stop;
      let failure: XCacheError;
      try {
        const opened = await this.#host.open({ signal, closed: (error) => this.#lost(signal, error) });
        if (opened.isOpen && !signal.aborted) {
          this.#use(opened);
          return;
        }
        failure = signal.reason ?? new ConnectionError(`${opened.name} closed the connection`);
        opened.destroy(failure);
      } catch (thrown) {
        failure = toError(thrown) as XCacheError;
      }
      if (!signal.aborted || this.#closed || this.#isFlapping) {
        this.#fail(failure);
        throw failure;
      }
    }
  }

  #use(opened: C): void {
    this.#attempt = undefined;
    this.#lastError = undefined;
    this.#failingSince = Number.POSITIVE_INFINITY;
    this.#connection = opened;
    this.#upSince = this.#host.clock.now();
    this.#host.up?.();
    this.#rejectLate();
    for (const { run } of this.#takeWaiting()) run(opened);
  }

  #lost(signal: AbortSignal, error: XCacheError): void {
    const lost = this.#connection;
    // Until a connection is in use, its attempt deals with its loss.
    if (signal !== this.#stop?.signal || lost === undefined) return;
    this.#connection = undefined;
    if (this.#host.clock.now() - this.#upSince > LONGEST_PAUSE_MS) this.#failures = 0;
    this.#fail(error, lost);
  }

  #fail(error: XCacheError, lost?: C): void {
    this.#attempt = undefined;
    if (this.#closed) return;
    const { clock } = this.#host;
    this.#lastError = error;
    this.#failingSince = Math.min(this.#failingSince, clock.now());
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    this.#pause = clock.after(pause * (0.5 + clock.random() / 2), () => {
      this.#pause = undefined;
      this.#begin().catch(() => {});
    });
    this.#host.down?.(error, lost);
    this.#rejectWaiting(error);
  }

  /** Their callers have timed out; a command sent later would take effect after its failure was reported. */
  #rejectLate(): void {
    const now = this.#host.clock.now();
    const waiting = this.#takeWaiting();
    const late = waiting.filter(({ due }) => due <= now);
    this.#waiting = waiting.filter(({ due }) => due > now);
    for (const { due } of this.#waiting) this.#wakeAt(due);
    const error = new OperationTimeoutError("no connection to the store within operation_timeout");
    for (const { failed } of late) failed(error);
  }

  #rejectWaiting(error: XCacheError): void {
    for (const { failed } of this.#takeWaiting()) failed(error);
  }

  #takeWaiting(): readonly WaitingCall<C>[] {
    this.#waitTimer?.cancel();
    this.#waitTimerDue = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
