// Whether the pushes of all servers can be relied on, asked at every hit of the near tier: the clock is read once a turn
// of the event loop, and again after so many hits within one.
import { atEndOfTurn } from "../../core/end-of-turn.ts";

const HITS_PER_LOOK = 15;

export class Trust {
  readonly #look: () => boolean;
  #isTrusted = false;
  #hitsLeft = 0;
  #looksAgain = false;

  constructor(look: () => boolean) {
    this.#look = look;
  }

  holds(): boolean {
    if (this.#hitsLeft-- > 0) return this.#isTrusted;
    this.#isTrusted = this.#look();
    // A connection that is not trusted may be so again with the next reply.
    this.#hitsLeft = this.#isTrusted ? HITS_PER_LOOK : 0;
    if (!this.#looksAgain) {
      this.#looksAgain = true;
      atEndOfTurn(this.#lookAgain);
    }
    return this.#isTrusted;
  }

  readonly #lookAgain = (): void => {
    this.#looksAgain = false;
    this.#hitsLeft = 0;
  };

  /** Something happened that may have ended it. */
  doubt(): void {
    this.#hitsLeft = 0;
  }
}
