// A connection that is opened when first needed and reopened with back-off when lost; calls wait for it until their deadline.
import type { Failed } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { ConnectionError, type XCacheError } from "../../core/errors.ts";
import { ProcessHold } from "../../core/event-loop.ts";
import { toError } from "../../core/events.ts";
import { markAttempt } from "../../core/resilience/store-failure.ts";
import { disconnected, notConnected } from "./connection-error.ts";

/** One connection, from its greeting until it breaks. */
export interface OpenConnection {
  /** The server's address, for messages. */
  readonly name: string;
  readonly isOpen: boolean;
  /** When the latest answered command was sent. */
  readonly provenAt: number;
  destroy(reason: XCacheError): void;
}

/** What a connection reports to its owner, and how the owner ends it. */
export interface ConnectionOwner {
  /** Called once, after everything pending was rejected. */
  closed(error: XCacheError): void;
  /** Aborting it ends the connection, open or still opening; its reason is an XCacheError. */
  readonly signal?: AbortSignal;
}

export interface ReconnectPauses {
  readonly firstMs: number;
  readonly longestMs: number;
}

export interface ReconnectingHost<C> {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** Default: 20 and 500 ms. */
  readonly pauses?: ReconnectPauses | undefined;
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
  readonly hasAlternative: boolean;
}

/**
 * The back-off doubles from the first pause to the longest, which bounds how long a server that is back goes unnoticed. A
 * connection that ends without having answered a call is one more failure.
 */
export const DEFAULT_PAUSES: ReconnectPauses = { firstMs: 20, longestMs: 500 };
/** The share of operation_timeout that a call waits for a connection: so that it fails with the reason, not as late. */
const WAITING_SHARE = 0.98;
/** A failover may renew a connection this often: by the old server, the sentinels, and the first connection to the new server. */
const IMMEDIATE_RENEWALS = 3;
/** The count restarts after this long without a renewal: longer than two connections that renew each other can pause. */
const RENEWALS_APART_MS = 5_000;

export class ReconnectingConnection<C extends OpenConnection> {
  /** The connection, while it is open and prepared. */
  connection: C | undefined;
  readonly #host: ReconnectingHost<C>;
  #waiting: WaitingCall<C>[] = [];
  /** Callers wait for these, and no socket keeps the process alive during a pause. */
  readonly #hold = new ProcessHold();
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
  /** When the latest connection was ready; undefined before the first one. */
  #upSince: number | undefined;
  #renewals = 0;
  #renewedAt = 0;
  #closed = false;

  constructor(host: ReconnectingHost<C>) {
    this.#host = host;
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

  /**
   * Calls `run` once connected, or `failed` if that takes longer than `due`. Default: about operation_timeout from now.
   * `hasAlternative`: the caller can go elsewhere, so it does not wait for the next attempt after one has failed.
   */
  whenUp(run: (connection: C) => void, failed: Failed, due?: number, hasAlternative = false): void {
    if (this.connection !== undefined) {
      run(this.connection);
      return;
    }
    const isPausing = this.#pause !== undefined;
    const reason = (isPausing && hasAlternative) || this.#isHopeless ? this.#lastError : undefined;
    if (this.#closed || reason !== undefined) {
      failed(reason ?? disconnected());
      return;
    }
    const { clock, operationTimeoutMs } = this.#host;
    const until = due ?? clock.now() + operationTimeoutMs * WAITING_SHARE;
    this.#waiting.push({ due: until, run, failed, hasAlternative });
    this.#hold.set(true);
    this.#wakeAt(until);
    if (!isPausing) this.#begin().catch(() => {});
  }

  /** Attempts keep failing for longer than any call would wait, or none has ever succeeded: calls get the reason at once. */
  get #isHopeless(): boolean {
    return this.isUnreachable || (this.#upSince === undefined && this.#pause !== undefined);
  }

  /** Resolves when connected; rejects when the attempt fails. */
  async connect(): Promise<void> {
    if (this.connection !== undefined) return;
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
    if (this.connection === undefined && this.#pause === undefined) return;
    this.connection?.destroy(reason);
    if (!this.#isFlapping) this.#begin().catch(() => {});
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pause?.cancel();
    const reason = disconnected();
    this.#stop?.abort(reason);
    this.connection?.destroy(reason);
    this.connection = undefined;
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
    this.connection = opened;
    this.#upSince = this.#host.clock.now();
    this.#host.up?.();
    this.#rejectLate();
    for (const { run } of this.#takeWaiting()) run(opened);
  }

  #lost(signal: AbortSignal, error: XCacheError): void {
    const lost = this.connection;
    // Until a connection is in use, its attempt deals with its loss.
    if (signal !== this.#stop?.signal || lost === undefined) return;
    this.connection = undefined;
    if (lost.provenAt >= (this.#upSince ?? 0)) this.#failures = 0;
    this.#fail(error, lost);
  }

  #fail(error: XCacheError, lost?: C): void {
    this.#attempt = undefined;
    if (this.#closed) return;
    const { clock, pauses: { firstMs, longestMs } = DEFAULT_PAUSES } = this.#host;
    this.#lastError = lost === undefined ? markAttempt(error) : error;
    this.#failingSince = Math.min(this.#failingSince, clock.now());
    const pause = Math.min(firstMs * 2 ** this.#failures++, longestMs);
    this.#pause = clock.after(pause * (0.5 + clock.random() / 2), () => {
      this.#pause = undefined;
      this.#begin().catch(() => {});
    });
    this.#host.down?.(error, lost);
    if (this.#isHopeless) this.#rejectWaiting(error);
    else this.#rejectWaiting(error, ({ hasAlternative }) => hasAlternative);
  }

  /** Their callers have timed out; a command sent later would take effect after its failure was reported. */
  #rejectLate(): void {
    const now = this.#host.clock.now();
    this.#rejectWaiting(notConnected(this.#lastError), ({ due }) => due <= now);
  }

  #rejectWaiting(error: XCacheError, isMeant: (call: WaitingCall<C>) => boolean = () => true): void {
    const waiting = this.#takeWaiting();
    this.#waiting = waiting.filter((call) => !isMeant(call));
    this.#hold.set(this.#waiting.length > 0);
    for (const { due } of this.#waiting) this.#wakeAt(due);
    for (const call of waiting) if (isMeant(call)) call.failed(error);
  }

  #takeWaiting(): readonly WaitingCall<C>[] {
    this.#waitTimer?.cancel();
    this.#waitTimerDue = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#hold.set(false);
    return waiting;
  }
}
