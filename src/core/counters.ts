// Rows of numbers that processes add to: small records of the library's own, next to a namespace's entries.
import type { Clock } from "./clock.ts";

export type CounterRow = readonly number[];

export interface Counters {
  /** The time that all who add agree on. */
  now(): number;
  /** Adds number by number, in one step however many do so at once; the row is kept for `lifeMs` from now. */
  add(name: string, row: CounterRow, lifeMs: number): void | Promise<void>;
  /** In the order of `names`; what is not there, or cannot be read, is undefined. */
  read(
    names: readonly string[],
  ): readonly (CounterRow | undefined)[] | Promise<readonly (CounterRow | undefined)[]>;
}

export function sumOf(one: CounterRow, other: CounterRow): CounterRow {
  const longer = one.length >= other.length ? one : other;
  return longer.map((_, at) => (one[at] ?? 0) + (other[at] ?? 0));
}

/** For a store that no other process sees. */
export class LocalCounters implements Counters {
  readonly #clock: Clock;
  readonly #rows = new Map<string, { readonly row: CounterRow; readonly expires: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  add(name: string, row: CounterRow, lifeMs: number): void {
    const now = this.now();
    const present = this.#rows.get(name);
    this.#rows.delete(name);
    this.#rows.set(name, { row: sumOf(row, present?.row ?? []), expires: now + lifeMs });
    // In the order of their last addition, so the first are the first to go.
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
