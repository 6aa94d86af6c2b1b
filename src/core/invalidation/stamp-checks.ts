// Who has found the stamps he relies on present, and need not look again before he is told to.
import { atEndOfTurn } from "../event-loop.ts";

export interface StampTrust {
  /** Look again. */
  revoke(): void;
}

export class StampChecks {
  /** One at a time: so what is served on a look does not grow with the namespaces. */
  #assured: StampTrust | undefined;
  #isTurnWatched = false;
  readonly #used: () => void;

  /** `used` is told in every turn in which somebody relies on stamps. */
  constructor(used: () => void = () => {}) {
    this.#used = used;
  }

  /**
   * He is told to doubt when any stamp is forgotten, when somebody else is assured, and at the latest when this turn of the
   * event loop is over.
   */
  assure(someone: StampTrust): void {
    if (this.#assured === someone) return;
    this.revoke();
    this.#assured = someone;
    if (this.#isTurnWatched) return;
    this.#isTurnWatched = true;
    this.#used();
    atEndOfTurn(this.#endTurn);
  }

  revoke(): void {
    const assured = this.#assured;
    this.#assured = undefined;
    assured?.revoke();
  }

  readonly #endTurn = (): void => {
    this.#isTurnWatched = false;
    this.revoke();
  };
}
