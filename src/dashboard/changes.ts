// What was changed from here, so that every open page shows it at once.
import type { DashboardAction } from "./options.ts";

/** A page that missed more than these was away for longer than its list of keys is worth. */
const MOST = 50;

export type Changed = Pick<DashboardAction, "action" | "key" | "tag">;

export class Changes {
  #recent: readonly (Changed & { readonly id: number })[] = [];
  #count = 0;
  #next = new AbortController();

  /** Oldest first, numbered from 1. */
  get recent(): readonly Changed[] {
    return this.#recent;
  }

  /** Aborts with the next change. */
  get next(): AbortSignal {
    return this.#next.signal;
  }

  add(change: Changed): void {
    this.#recent = [...this.#recent, { ...change, id: ++this.#count }].slice(-MOST);
    this.#next.abort();
    this.#next = new AbortController();
  }
}
