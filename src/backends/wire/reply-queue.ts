// The commands of a connection that wait for replies, in the order they were sent, and the deadline of the oldest.
import type { Clock, Timer } from "../../core/clock.ts";
import { ProcessHold } from "../../core/event-loop.ts";

/** A command that waits for its reply. */
export interface Awaiting {
  /** When it was sent; 0 until then. */
  sentAt: number;
}

export interface ReplyQueueOptions {
  readonly clock: Clock;
  /** How long a reply may take. */
  readonly limitMs: number;
  /** Whether an awaited reply keeps the process alive. */
  readonly holdsProcess: boolean;
  /** Called once when the oldest reply is late. */
  late(): void;
}

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

  add(awaiting: A): void {
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

  /** The oldest has got its reply. */
  shift(): void {
    this.#awaiting[this.#answered++] = undefined as never;
    if (this.#answered === this.#awaiting.length) {
      this.#awaiting = [];
      this.#answered = 0;
      this.#hold.set(false);
    } else if (this.#answered > CUT_AT) {
      this.#awaiting = this.#awaiting.slice(this.#answered);
      this.#answered = 0;
    }
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

  /** One timer for the oldest, set again only when it fires: replies cost no timer of their own. */
  #arm(): void {
    this.#watch = undefined;
    const { oldest } = this;
    if (oldest === undefined) return;
    const { clock, limitMs } = this.#options;
    const wait = oldest.sentAt + limitMs - clock.now();
    // A process that was busy or stopped first reads what has arrived meanwhile.
    if (wait > 0) this.#watch = clock.after(wait, () => this.#arm());
    else setImmediate(() => this.#judge(oldest));
  }

  #judge(late: A): void {
    if (this.#isClosed) return;
    if (this.oldest === late) this.#options.late();
    else if (this.#watch === undefined) this.#arm();
  }
}
