// Whether the pushes of all servers can be relied on, asked at every hit of the near tier and for every stamp at hand: the
// servers are looked at once a turn of the event loop, and again in one that takes long.
import { atEndOfTurn } from "../../../core/event-loop.ts";

/** So many questions within one turn are answered on one reading of the clock. */
const ANSWERS_PER_READING = 15;
/** Whoever is relied on is kept awake, also in a turn that takes long. */
const LOOK_EVERY_MS = 100;

export class PushTrust {
  readonly #look: () => number;
  readonly #now: () => number;
  /** Until when the answer of the latest look counts. */
  #until = 0;
  #isTrusted = false;
  #answersLeft = 0;
  #isTurnWatched = false;

  /** `look` tells until when the servers are to be trusted, as far as is known now. */
  constructor(look: () => number, now: () => number) {
    this.#look = look;
    this.#now = now;
  }

  holds(): boolean {
    if (this.#answersLeft-- > 0) return this.#isTrusted;
    this.#isTrusted = this.holdsAt(this.#now());
    // A connection that is not trusted may be so again with the next reply.
    this.#answersLeft = this.#isTrusted ? ANSWERS_PER_READING : 0;
    return this.#isTrusted;
  }

  /** As `holds`, for somebody who has just read the clock. */
  holdsAt(now: number): boolean {
    if (now < this.#until) return true;
    const until = this.#look();
    this.#until = Math.min(until, now + LOOK_EVERY_MS);
    if (!this.#isTurnWatched) {
      this.#isTurnWatched = true;
      atEndOfTurn(this.#endTurn);
    }
    return now < until;
  }

  readonly #endTurn = (): void => {
    this.#isTurnWatched = false;
    this.revoke();
  };

  /** Something happened that may have ended it. */
  revoke(): void {
    this.#answersLeft = 0;
    this.#until = 0;
  }
}
