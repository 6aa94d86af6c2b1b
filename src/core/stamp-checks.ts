// Who has found the stamps he relies on present, and need not look again before he is told to.
import { atEndOfTurn } from "./end-of-turn.ts";

export interface Assured {
  /** Look again. */
  doubt(): void;
}

export class StampChecks {
  /** So many hits, of all namespaces together, are served before somebody has to look at the push channel again. */
  hitsLeft = 0;
  #assured: Assured[] = [];

  /** He is told to doubt when any stamp is forgotten, and at the latest when this turn of the event loop is over. */
  assure(someone: Assured): void {
    if (this.#assured.push(someone) === 1) atEndOfTurn(this.doubt);
  }

  readonly doubt = (): void => {
    if (this.#assured.length === 0) return;
    const assured = this.#assured;
    this.#assured = [];
    for (const one of assured) one.doubt();
  };
}
