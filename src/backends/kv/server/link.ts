// A connection that is made when it is needed and again when it is lost; commands wait for it as long as they may.
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import type { Reply } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Connection, ConnectionListener } from "./connection.ts";
import { disconnected } from "./connection-error.ts";

export interface LinkHost {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
  /** Makes a connection and prepares it; nothing else is sent before this resolves. The listener's signal may end it. */
  open(listener: ConnectionListener): Promise<Connection>;
  /** A push, in its place among the replies; also while the connection is prepared. */
  pushed(push: readonly Reply[]): void;
  /** The link has a connection. */
  up(): void;
  /** It lost its connection, or could not get one. */
  down(error: XCacheError, lost: Connection | undefined): void;
}

/** An answer to somebody who can try elsewhere. */
export interface LinkAnswer extends Answer {
  /** In place of `reject` where the command was surely not sent. */
  unsent?(error: XCacheError): void;
}

/** What waits for a connection. */
interface Waiting {
  readonly answer: LinkAnswer;
  readonly due: number;
  sendOver(connection: Connection): void;
}

/** Pauses between attempts grow from the first to the last. A connection that lasts no longer is one more failure. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 2_000;
/** So many renewals are at once: of a failover the old server may tell, then the sentinels, then the link that met the new. */
const RENEWALS_AT_ONCE = 3;
/** They are counted anew after a time without any, longer than the longest pauses of two links that renew each other. */
const RENEWALS_APART_MS = 5_000;

export class Link {
  readonly #host: LinkHost;
  #connection: Connection | undefined;
  #waiting: Waiting[] = [];
  /** Looks for those who have waited too long. */
  #watch: Timer | undefined;
  #watchDue = Number.POSITIVE_INFINITY;
  #attempt: Promise<void> | undefined;
  /** Ends the attempt that is under way. */
  #stop: AbortController | undefined;
  #failures = 0;
  #failingSince = Number.POSITIVE_INFINITY;
  #failed: XCacheError | undefined;
  #pause: Timer | undefined;
  #upSince = 0;
  #renewals = 0;
  #renewedAt = 0;
  #closed = false;

  constructor(host: LinkHost) {
    this.#host = host;
  }

  /** The connection, while it is open and prepared. */
  get connection(): Connection | undefined {
    return this.#connection;
  }

  /** How many commands wait for a connection. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Attempts have failed for longer than anybody waits for one: so far as is known, in vain. */
  get isHopeless(): boolean {
    return this.#host.clock.now() - this.#failingSince >= this.#host.operationTimeoutMs;
  }

  send(args: readonly Argument[], answer: LinkAnswer): void {
    if (this.#connection !== undefined) this.#connection.send(args, answer);
    else this.#wait(answer, (connection) => connection.send(args, answer));
  }

  /** See Connection.sendAsking. */
  sendAsking(args: readonly Argument[], answer: LinkAnswer): void {
    if (this.#connection !== undefined) this.#connection.sendAsking(args, answer);
    else this.#wait(answer, (connection) => connection.sendAsking(args, answer));
  }

  /** GET; see Connection.read. */
  read(key: string, isWatched: boolean, answer: LinkAnswer): void {
    if (this.#connection !== undefined) this.#connection.read(key, isWatched, answer);
    else this.#wait(answer, (connection) => connection.read(key, isWatched, answer));
  }

  /** MGET; see Connection.readMany. */
  readMany(keys: readonly string[], isWatched: boolean, answer: Answer): boolean {
    return this.#connection?.readMany(keys, isWatched, answer) ?? false;
  }

  command(...args: Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(args, { resolve, reject }));
  }

  /** Resolves when there is a connection; rejects when the attempt fails. */
  async connect(): Promise<void> {
    if (this.#connection !== undefined) return;
    await this.#begin();
  }

  /**
   * Gives up the present connection, or the attempt at one, and makes another at once; what waits goes on waiting. One of
   * many renewals in a short time is a failure like others: where an address leads to two servers they would never end.
   */
  renew(reason: XCacheError): void {
    this.#countRenewal();
    if (!this.#isRestless) {
      this.#failures = 0;
      this.#failingSince = Number.POSITIVE_INFINITY;
    }
    if (this.#attempt !== undefined) {
      this.#stop?.abort(reason);
      return;
    }
    if (this.#connection === undefined && this.#pause === undefined) return;
    this.#connection?.destroy(reason);
    if (!this.#isRestless) this.#begin().catch(() => {});
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

  /** Whether the last renewal was one of many. */
  get #isRestless(): boolean {
    return this.#renewals > RENEWALS_AT_ONCE;
  }

  #wait(answer: LinkAnswer, sendOver: Waiting["sendOver"]): void {
    // Between two attempts nothing can be sent, and when they keep failing nobody waits for one: the last says why.
    const failed = this.#pause !== undefined || this.isHopeless ? this.#failed : undefined;
    if (this.#closed || failed !== undefined) {
      rejectUnsent(answer, failed ?? disconnected());
      return;
    }
    const due = answer.due ?? this.#host.clock.now() + this.#host.operationTimeoutMs;
    this.#waiting.push({ answer, due, sendOver });
    this.#watchUntil(due);
    this.#begin().catch(() => {});
  }

  #watchUntil(due: number): void {
    if (due >= this.#watchDue) return;
    this.#watch?.cancel();
    this.#watchDue = due;
    this.#watch = this.#host.clock.after(due - this.#host.clock.now(), () => this.#rejectLate());
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
      this.#stop = stop;
      let failure: XCacheError;
      try {
        const opened = await this.#host.open(this.#listener(stop.signal));
        if (opened.isOpen && !stop.signal.aborted) {
          this.#use(opened);
          return;
        }
        failure = stop.signal.reason ?? new ConnectionError("the connection was closed while it was made");
        opened.destroy(failure);
      } catch (thrown) {
        failure = toError(thrown) as XCacheError;
      }
      if (!stop.signal.aborted || this.#closed || this.#isRestless) {
        this.#fail(failure);
        throw failure;
      }
    }
  }

  #listener(signal: AbortSignal): ConnectionListener {
    return {
      signal,
      pushed: (push) => this.#host.pushed(push),
      closed: (error) => this.#lost(signal, error),
    };
  }

  #use(opened: Connection): void {
    this.#attempt = undefined;
    this.#failed = undefined;
    this.#failingSince = Number.POSITIVE_INFINITY;
    this.#connection = opened;
    this.#upSince = this.#host.clock.now();
    this.#host.up();
    this.#sendWaiting(opened);
  }

  #sendWaiting(connection: Connection): void {
    this.#rejectLate();
    for (const waiting of this.#takeWaiting()) waiting.sendOver(connection);
  }

  #lost(signal: AbortSignal, error: XCacheError): void {
    const lost = this.#connection;
    // Until it is in use, a connection is the business of the attempt at it.
    if (signal !== this.#stop?.signal || lost === undefined) return;
    this.#connection = undefined;
    if (this.#host.clock.now() - this.#upSince > LONGEST_PAUSE_MS) this.#failures = 0;
    if (!this.#closed) this.#fail(error, lost);
  }

  #fail(error: XCacheError, lost?: Connection): void {
    this.#attempt = undefined;
    if (this.#closed) return;
    this.#failed = error;
    this.#failingSince = Math.min(this.#failingSince, this.#host.clock.now());
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    this.#pause = this.#host.clock.after(pause * (0.5 + this.#host.clock.random() / 2), () => {
      this.#pause = undefined;
      this.#begin().catch(() => {});
    });
    this.#host.down(error, lost);
    this.#rejectWaiting(error);
  }

  /** The caller of each was told that it failed; carried out later, it would come out of the blue. */
  #rejectLate(): void {
    const now = this.#host.clock.now();
    const waiting = this.#takeWaiting();
    const late = waiting.filter(({ due }) => due <= now);
    this.#waiting = waiting.filter(({ due }) => due > now);
    for (const { due } of this.#waiting) this.#watchUntil(due);
    const error = new OperationTimeoutError("no connection to the store within operation_timeout");
    for (const { answer } of late) rejectUnsent(answer, error);
  }

  #rejectWaiting(error: XCacheError): void {
    for (const { answer } of this.#takeWaiting()) rejectUnsent(answer, error);
  }

  #takeWaiting(): readonly Waiting[] {
    this.#watch?.cancel();
    this.#watchDue = Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

function rejectUnsent(answer: LinkAnswer, error: XCacheError): void {
  if (answer.unsent === undefined) answer.reject(error);
  else answer.unsent(error);
}
