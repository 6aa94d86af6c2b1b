// Rows of counters that several processes add to, stored as the library's own records next to a namespace's entries.
import type { Clock } from "./clock.ts";

export type CounterRow = readonly number[];

export interface Counters {
  /** The clock that all writers share. */
  now(): number;
  /** Adds element by element, atomically; the row is kept for `lifetimeMs` from now. */
  add(name: string, row: CounterRow, lifetimeMs: number): void | Promise<void>;
  /** In the order of `names`; undefined for a row that is missing or unreadable. */
  read(
    names: readonly string[],
  ): readonly (CounterRow | undefined)[] | Promise<readonly (CounterRow | undefined)[]>;
}

export function sumOf(one: CounterRow, other: CounterRow): CounterRow {
  const longer = one.length >= other.length ? one : other;
  return longer.map((_, at) => (one[at] ?? 0) + (other[at] ?? 0));
}

/** For a store that is private to this process. */
export class LocalCounters implements Counters {
  readonly #clock: Clock;
  readonly #rows = new Map<string, { readonly row: CounterRow; readonly expires: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  add(name: string, row: CounterRow, lifetimeMs: number): void {
    const now = this.now();
    const present = this.#rows.get(name);
    this.#rows.delete(name);
    this.#rows.set(name, { row: sumOf(row, present?.row ?? []), expires: now + lifetimeMs });
    // The map is in order of the last addition, so the first rows expire first.
    for (const [oldest, { expires }] of this.#rows) {
      if (expires > now) break;
      this.#rows.delete(oldest);
    }
  }

  read(names: readonly string[]): readonly (CounterRow | undefined)[] {
    const now = this.now();
    return names.map((name) => {
      const held = this.#rows.get(name);
      return held !== undefined && held.expires > now ? held.row : undefined;
    });
  }
}
