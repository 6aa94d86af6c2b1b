// What has been visited: for each key the accounts that none of the others covers.
import { type Account, covers } from "./situation.ts";

export class Accounts {
  readonly #covers: typeof covers;
  readonly #accounts = new Map<string, Account[]>();
  #size = 0;

  /** `isExact`: an account covers only its equals. */
  constructor(isExact = false) {
    this.#covers = isExact ? areEqual : covers;
  }

  get size(): number {
    return this.#size;
  }

  /** False if what can be found from there is found from a situation that was added before. */
  add(key: string, { seen, queued }: Account): boolean {
    const account: Account = { seen, queued };
    const known = this.#accounts.get(key);
    if (known === undefined) this.#accounts.set(key, [account]);
    else {
      if (known.some((each) => this.#covers(each, account))) return false;
      const left = known.filter((each) => !this.#covers(account, each));
      left.push(account);
      this.#accounts.set(key, left);
    }
    this.#size++;
    return true;
  }
}

const areEqual = (one: Account, other: Account): boolean => covers(one, other) && covers(other, one);
