// The pages of a table by number, and the keys of cleared pages that are still to be reclaimed.
import { Page, type PageHost } from "./page.ts";

interface Retired {
  readonly number: number;
  readonly keys: Iterator<string>;
}

/** A key of a cleared page, and the number the page had. */
export interface RetiredKey {
  readonly number: number;
  readonly key: string;
}

export class Pages {
  /** A number without a page is free or belonged to a cleared page. */
  readonly #pages: (Page | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  #retired: Retired[] = [];

  get hasRetired(): boolean {
    return this.#retired.length > 0;
  }

  open(host: PageHost): Page {
    const page = new Page(host);
    this.#enter(page);
    return page;
  }

  /** The page with this number; undefined if it was cleared since. */
  at(number: number): Page | undefined {
    return this.#pages[number];
  }

  /** Empties a page at once and gives it another number. */
  retire(page: Page): void {
    this.#retired.push({ number: page.number, keys: page.retire() });
    this.#pages[page.number] = undefined;
    this.#enter(page);
  }

  /** Each key that was in a cleared page, once. */
  nextRetired(): RetiredKey | undefined {
    for (;;) {
      const retired = this.#retired[0];
      if (retired === undefined) return undefined;
      const next = retired.keys.next();
      if (next.done !== true) return { number: retired.number, key: next.value };
      this.#retired.shift();
      this.#freeNumbers.push(retired.number);
    }
  }

  /** Call it when no entry of a cleared page is left. */
  forgetRetired(): void {
    for (const { number } of this.#retired) this.#freeNumbers.push(number);
    this.#retired = [];
  }

  #enter(page: Page): void {
    page.number = this.#freeNumbers.pop() ?? this.#pages.length;
    this.#pages[page.number] = page;
  }
}
