// Whether the pushes of all servers can be trusted. Every near-tier hit asks, so the servers are checked once per turn of the
// event loop, and again in a long turn.
import { atEndOfTurn } from "../../../core/event-loop.ts";

/** Answers given per reading of the clock within one turn. */
const ANSWERS_PER_READING = 15;
/** How often the servers are checked in a long turn: each check keeps their heartbeat running. */
const CHECK_EVERY_MS = 100;

export class PushTrust {
  readonly #check: () => number;
  readonly #now: () => number;
  /** Until when the latest check is valid. */
  #until = 0;
  #isTrusted = false;
  #answersLeft = 0;
  #endsWithTurn = false;

  /** `check` returns until when the servers can be trusted, as far as is known now. */
  constructor(check: () => number, now: () => number) {
    this.#check = check;
    this.#now = now;
  }

  holds(): boolean {
    if (this.#answersLeft-- > 0) return this.#isTrusted;
    this.#isTrusted = this.holdsAt(this.#now());
    // A connection may become trusted again with its next reply.
    this.#answersLeft = this.#isTrusted ? ANSWERS_PER_READING : 0;
    return this.#isTrusted;
  }

  /** As `holds`, for a caller that has just read the clock. */
  holdsAt(now: number): boolean {
    if (now < this.#until) return true;
    const until = this.#check();
    this.#until = Math.min(until, now + CHECK_EVERY_MS);
    if (!this.#endsWithTurn) {
      this.#endsWithTurn = true;
      atEndOfTurn(this.#endTurn);
    }
    return now < until;
  }

  readonly #endTurn = (): void => {
    this.#endsWithTurn = false;
    this.revoke();
  };

  /** Forces a new check: trust may have ended. */
  revoke(): void {
    this.#answersLeft = 0;
    this.#until = 0;
  }
}
