// Entries that were evicted and not notified yet, the oldest first. A list of links: most of the time it is one entry, and an
// array would be allocated with room for sixteen.
import type { Page } from "../layout/page.ts";

export interface Evicted {
  readonly page: Page;
  readonly key: string;
  next: Evicted | undefined;
}

export class Evictions {
  #first: Evicted | undefined;
  #last: Evicted | undefined;

  get isEmpty(): boolean {
    return this.#first === undefined;
  }

  add(page: Page, key: string): void {
    const evicted: Evicted = { page, key, next: undefined };
    if (this.#last === undefined) this.#first = evicted;
    else this.#last.next = evicted;
    this.#last = evicted;
  }

  /** Empties the list and returns its first entry: a listener may cause more evictions. */
  take(): Evicted | undefined {
    const first = this.#first;
    this.#first = undefined;
    this.#last = undefined;
    return first;
  }
}
