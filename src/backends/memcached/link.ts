// A connection that is made when it is needed and again when it is lost; calls wait for it as long as they may.
import type { Failed } from "../../core/backend.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { toError } from "../../core/events.ts";
import type { Connection } from "./connection.ts";
import { disconnected } from "./reply-error.ts";

export interface LinkHost {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** Makes a connection and prepares it; nothing else is sent before this resolves. `signal` may end it. */
  open(signal: AbortSignal, closed: (error: XCacheError) => void): Promise<Connection>;
  /** It lost its connection, or could not get one. */
  down(error: XCacheError): void;
}

/** Where a call gets a connection from. */
export interface Carrier {
  /** The connection, while it is open and prepared. */
  readonly connection: Connection | undefined;
  /** Calls `run` once there is one, or `failed` where none can be had in time. */
  whenUp(run: (connection: Connection) => void, failed: Failed): void;
}

interface Waiting {
  readonly due: number;
  readonly run: (connection: Connection) => void;
  readonly failed: Failed;
}

/** Pauses between attempts grow from the first to the last. A connection that lasts no longer is one more failure. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;

export class Link implements Carrier {
  readonly #host: LinkHost;
  #connection: Connection | undefined;
  #waiting: Waiting[] = [];
  /** Looks for those who have waited too long. */
  #watch: Timer | undefined;
  #attempt: Promise<void> | undefined;
  readonly #stop = new AbortController();
  #failures = 0;
  #failingSince = Number.POSITIVE_INFINITY;
  #failed: XCacheError | undefined;
  #pause: Timer | undefined;
  #upSince = 0;

  constructor(host: LinkHost) {
    this.#host = host;
  }

  get connection(): Connection | undefined {
    return this.#connection;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  whenUp(run: (connection: Connection) => void, failed: Failed): void {
    if (this.#connection !== undefined) {
      run(this.#connection);
      return;
    }
    // Between two attempts nothing can be sent, and when they keep failing nobody waits for one: the last says why.
    const reason = this.#pause !== undefined || this.#isHopeless ? this.#failed : undefined;
    if (this.#isClosed || reason !== undefined) {
      failed(reason ?? disconnected());
      return;
    }
    const { clock, operationTimeoutMs } = this.#host;
    this.#waiting.push({ due: clock.now() + operationTimeoutMs, run, failed });
    this.#watch ??= clock.after(operationTimeoutMs, () => this.#rejectLate());
    this.#begin().catch(() => {});
  }

  /** Resolves when there is a connection; rejects when the attempt fails. */
  async connect(): Promise<void> {
    if (this.#connection !== undefined) return;
    // One that keeps failing is tried again and again anyway.
    if (this.#isHopeless && this.#failed !== undefined) throw this.#failed;
    await this.#begin();
  }

  close(): void {
    if (this.#isClosed) return;
    const reason = disconnected();
    this.#stop.abort(reason);
    this.#pause?.cancel();
    this.#connection?.destroy(reason);
    this.#connection = undefined;
    this.#rejectWaiting(reason);
  }

  get #isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Attempts have failed for longer than anybody waits for one: so far as is known, in vain. */
  get #isHopeless(): boolean {
    return this.#host.clock.now() - this.#failingSince >= this.#host.operationTimeoutMs;
  }

  #begin(): Promise<void> {
    if (this.#isClosed) return Promise.reject(disconnected());
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#attempt ??= this.#open().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #open(): Promise<void> {
    let opened: Connection;
    try {
      opened = await this.#host.open(this.#stop.signal, (error) => this.#lost(error));
      if (!opened.isOpen) throw new ConnectionError(`${opened.name} closed the connection`);
    } catch (thrown) {
      const error = toError(thrown) as XCacheError;
      this.#fail(error);
      throw error;
    }
    if (this.#isClosed) {
      opened.destroy(disconnected());
      throw disconnected();
    }
    this.#use(opened);
  }

  #use(opened: Connection): void {
    this.#attempt = undefined;
    this.#failed = undefined;
    this.#failingSince = Number.POSITIVE_INFINITY;
    this.#connection = opened;
    this.#upSince = this.#host.clock.now();
    this.#rejectLate();
    for (const { run } of this.#takeWaiting()) run(opened);
  }

  #lost(error: XCacheError): void {
    // Until it is in use, a connection is the business of the attempt at it.
    if (this.#connection === undefined) return;
    this.#connection = undefined;
    if (this.#host.clock.now() - this.#upSince > LONGEST_PAUSE_MS) this.#failures = 0;
    this.#fail(error);
  }

  #fail(error: XCacheError): void {
    this.#attempt = undefined;
    if (this.#isClosed) return;
    const { clock } = this.#host;
    this.#failed = error;
    this.#failingSince = Math.min(this.#failingSince, clock.now());
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    this.#pause = clock.after(pause * (0.5 + clock.random() / 2), () => {
      this.#pause = undefined;
      this.#begin().catch(() => {});
    });
    this.#host.down(error);
    this.#rejectWaiting(error);
  }

  /** The caller of each was told that it failed; carried out later, it would come out of the blue. */
  #rejectLate(): void {
    const { clock } = this.#host;
    const now = clock.now();
    const waiting = this.#takeWaiting();
    this.#waiting = waiting.filter(({ due }) => due > now);
    const [next] = this.#waiting;
    if (next !== undefined) this.#watch = clock.after(next.due - now, () => this.#rejectLate());
    const error = new OperationTimeoutError("no connection to the store within operation_timeout");
    for (const { due, failed } of waiting) if (due <= now) failed(error);
  }

  #rejectWaiting(error: XCacheError): void {
    for (const { failed } of this.#takeWaiting()) failed(error);
  }

  #takeWaiting(): readonly Waiting[] {
    this.#watch?.cancel();
    this.#watch = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}
