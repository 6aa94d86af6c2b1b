// What has been visited: for each key the accounts that none of the others covers.
import { type Account, covers } from "./situation.ts";

export class Accounts {
  readonly #accounts = new Map<string, Account[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** False if what can be found from there is found from a situation that was added before. */
  add(key: string, { seen, queued }: Account): boolean {
    const account: Account = { seen, queued };
    const known = this.#accounts.get(key);
    if (known === undefined) this.#accounts.set(key, [account]);
    else {
      if (known.some((each) => covers(each, account))) return false;
      const left = known.filter((each) => !covers(account, each));
      left.push(account);
      this.#accounts.set(key, left);
    }
    this.#size++;
    return true;
  }
}
