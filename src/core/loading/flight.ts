// An in-flight load.
import type { ResolvedLoadOptions } from "../entry-options.ts";
import type { Admission, Found, MaybePromise, Ticket } from "../namespace.ts";
import { LoadLimit } from "./load-limit.ts";
import type { Outcome } from "./waiting-call.ts";

/** The value of a load until it is started. */
const STARTING = new Promise<never>(() => {});

/** An in-flight load and its waiting callers. */
export class Flight {
  /** Started although a fresh value may be stored, which other callers get meanwhile. */
  readonly forced: boolean;
  readonly tags: readonly string[];
  /** The moment in the change log at which it began. */
  readonly since: number;
  /** When it was started without a ticket. */
  beganAt = 0;
  waiters = 0;
  storeFailed = false;
  /** The permission to store its result, once granted. */
  ticket: Ticket | undefined;
  /** The load was started without a ticket. */
  hasNoTicket = false;
  /** What the load got as the stale value. */
  stale: Found | undefined;
  /** Aborts when the cache that started it disconnects. */
  readonly signal: AbortSignal;
  /** Settles when it is decided whether to load. */
  admission: MaybePromise<Admission> | undefined;
  readonly limit = new LoadLimit();
  /** The value for the call that started it. */
  landing: Promise<unknown> = STARTING;
  /** Known when `landing` has resolved. */
  result: Outcome | undefined;
  #outcome: Promise<Outcome> | undefined;

  constructor(request: ResolvedLoadOptions, since: number, signal: AbortSignal) {
    this.forced = request.force;
    this.tags = request.entry.tags;
    this.since = since;
    this.signal = signal;
  }

  /** Created when a call asks for it: the one that started the load alone needs only `landing`. */
  get outcome(): Promise<Outcome> {
    this.#outcome ??= this.landing.then(() => this.result as Outcome);
    return this.#outcome;
  }

  /**
   * Notes the outcome; returns the value for the call that started it. If others have joined, that is a copy, made by `own`:
   * that call may change it before the others have got theirs.
   */
  land(outcome: Outcome, own: (value: unknown) => unknown): unknown {
    this.result = outcome;
    return this.waiters > 1 ? own(outcome.value) : outcome.value;
  }
}
