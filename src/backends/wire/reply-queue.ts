// The commands of a connection that wait for replies, in the order they were sent, and the deadline of the oldest.
import type { Clock, Timer } from "../../core/clock.ts";
import { ProcessHold } from "../../core/event-loop.ts";

/** A command that waits for its reply. */
export interface Awaiting {
  /** When it was sent; 0 until then. */
  sentAt: number;
  /** The size of the request. */
  bytes: number;
}

/** Slower than this, a transfer is given up: in bytes per millisecond, which is a megabyte per second. */
const LEAST_RATE = 1_000;
/** Requests up to this size are sent in no time. */
export const SMALL_REQUEST = 64 * 1024;
/** The kernel takes about this much of a request before anything is seen of how fast it is sent. */
const KERNEL_BUFFER = 4 * 1024 * 1024;

export interface ReplyQueueOptions {
  readonly clock: Clock;
  /** How long a reply may take. */
  readonly limitMs: number;
  /** Whether an awaited reply keeps the process alive. */
  readonly holdsProcess: boolean;
  /** Called once when the oldest reply is late. */
  late(): void;
}

/** A timer that fires this much later than planned means that the event loop was blocked. */
const BUSY_MS = 50;

/** Answered commands are cut off the list this many at a time. */
const CUT_AT = 1_024;

export class ReplyQueue<A extends Awaiting> {
  readonly #options: ReplyQueueOptions;
  readonly #hold = new ProcessHold();
  #awaiting: A[] = [];
  #answered = 0;
  #unsent = 0;
  #watch: Timer | undefined;
  #isClosed = false;
  #bytes = 0;
  /** When part of a reply last arrived or part of a large request was taken. */
  #movedAt = 0;
  /** When the first part of the present reply arrived, of which more is to come; 0: none has. */
  #arrivingSince = 0;
  #arrivedAt = 0;
  #arrivedBytes = 0;
  #missingBytes = 0;

  constructor(options: ReplyQueueOptions) {
    this.#options = options;
  }

  get length(): number {
    return this.#awaiting.length - this.#answered;
  }

  /** How many have not been sent yet. */
  get unsent(): number {
    return this.#unsent;
  }

  /** The command whose reply comes next. */
  get oldest(): A | undefined {
    return this.#awaiting[this.#answered];
  }

  /** When the oldest was sent; Infinity if none waits for a reply. */
  get awaitedSince(): number {
    return this.oldest?.sentAt || Number.POSITIVE_INFINITY;
  }

  /** The size of the requests that wait for replies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the oldest would be late if it were not for a transfer that goes on: calls behind it wait as well. */
  isExtended(now: number): boolean {
    const { oldest } = this;
    if (oldest === undefined || oldest.sentAt === 0) return false;
    const { limitMs } = this.#options;
    const due = this.#dueOf(oldest);
    // A little before, so that a deadline that was set at the same moment does not come first.
    return now >= oldest.sentAt + limitMs * 0.9 && now < due && due > oldest.sentAt + limitMs;
  }

  /** Part of a large request was taken. */
  moved(): void {
    this.#movedAt = this.#options.clock.now();
  }

  /** Part of a reply has arrived; `missingBytes` more are expected. */
  arriving(arrivedBytes: number, missingBytes: number): void {
    this.moved();
    if (this.#arrivingSince === 0) this.#arrivingSince = this.#movedAt;
    this.#arrivedBytes += arrivedBytes;
    this.#missingBytes = missingBytes;
  }

  /** The last part of a reply has arrived, or a reply to one of many large requests. */
  arrived(): void {
    this.moved();
    this.#arrivedAt = this.#movedAt;
    this.#arrivingSince = 0;
    this.#arrivedBytes = 0;
  }

  add(awaiting: A): void {
    this.#bytes += awaiting.bytes;
    this.#awaiting.push(awaiting);
    this.#unsent++;
  }

  /** Everything added so far is about to be sent. */
  sent(): void {
    const now = this.#options.clock.now();
    for (let at = this.#awaiting.length - this.#unsent; at < this.#awaiting.length; at++) {
      (this.#awaiting[at] as A).sentAt = now;
    }
    this.#unsent = 0;
    this.#hold.set(this.#options.holdsProcess && this.length > 0);
    if (this.#watch === undefined) this.#arm();
  }

  /** The oldest, which has got its reply; undefined if none waits for one. */
  shift(): A | undefined {
    const oldest = this.#awaiting[this.#answered];
    if (oldest === undefined) return undefined;
    const { bytes } = oldest;
    this.#bytes -= bytes;
    // Those behind it have not been on their way for longer.
    if (bytes > SMALL_REQUEST) this.arrived();
    this.#awaiting[this.#answered++] = undefined as never;
    if (this.#answered === this.#awaiting.length) {
      this.#awaiting = [];
      this.#answered = 0;
      this.#hold.set(false);
    } else if (this.#answered > CUT_AT) {
      this.#awaiting = this.#awaiting.slice(this.#answered);
      this.#answered = 0;
    }
    return oldest;
  }

  /** There will be no more replies. Returns the commands that wait for one. */
  close(): readonly A[] {
    this.#isClosed = true;
    this.#watch?.cancel();
    this.#hold.set(false);
    const left = this.#awaiting.slice(this.#answered);
    this.#awaiting = [];
    this.#answered = 0;
    return left;
  }

  /** A transfer that stops is late after the limit; one that goes on, when it is slower than the least rate. */
  #dueOf({ sentAt, bytes }: A): number {
    const { limitMs } = this.#options;
    const sendingMs = bytes > SMALL_REQUEST ? Math.min(bytes, KERNEL_BUFFER) / LEAST_RATE : 0;
    const due = Math.max(sentAt, this.#movedAt) + limitMs + sendingMs;
    const isArriving = this.#arrivingSince > 0;
    const size = isArriving ? this.#arrivedBytes + this.#missingBytes : Math.max(this.#bytes, bytes);
    const since = isArriving ? this.#arrivingSince : Math.max(sentAt, this.#arrivedAt);
    return Math.min(due, since + limitMs + size / LEAST_RATE);
  }

  /** One timer for the oldest, set again only when it fires: replies cost no timer of their own. */
  #arm(plannedAt = Number.POSITIVE_INFINITY): void {
    this.#watch = undefined;
    const { oldest } = this;
    if (oldest === undefined) return;
    const { clock, limitMs } = this.#options;
    const now = clock.now();
    // A process that was busy or stopped gets as long again to read what has arrived meanwhile.
    const busyMs = now - plannedAt;
    const wait = Math.max(this.#dueOf(oldest) - now, busyMs > BUSY_MS ? Math.min(busyMs, limitMs) : 0);
    if (wait > 0) this.#watch = clock.after(wait, () => this.#arm(now + wait));
    else setImmediate(() => this.#judge(oldest));
  }

  #judge(late: A): void {
    if (this.#isClosed) return;
    if (this.oldest === late && this.#dueOf(late) <= this.#options.clock.now()) this.#options.late();
    else if (this.#watch === undefined) this.#arm();
  }
}
