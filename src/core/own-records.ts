// Small records of the library itself, stored next to a namespace's entries and changed by several processes.
import type { Clock } from "./clock.ts";

export interface OwnRecords {
  /** No other process sees them. */
  readonly isPrivate?: true;
  /** The clock that all writers share. */
  now(): number;
  /**
   * Replaces the value under a name by what `change` makes of the present one, atomically; kept for `lifetimeMs` from now.
   * `change` may be called several times, with undefined where there is no value, or an unreadable one.
   */
  update(name: string, change: (present: unknown) => unknown, lifetimeMs: number): void | Promise<void>;
  /** In the order of `names`; undefined for a record that is missing or unreadable. */
  read(names: readonly string[]): readonly unknown[] | Promise<readonly unknown[]>;
}

/** For a store that is private to this process. */
export class LocalRecords implements OwnRecords {
  readonly isPrivate = true;
  readonly #clock: Clock;
  readonly #held = new Map<string, { readonly value: unknown; readonly expires: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  update(name: string, change: (present: unknown) => unknown, lifetimeMs: number): void {
    const now = this.now();
    const [present] = this.read([name]);
    this.#held.delete(name);
    this.#held.set(name, { value: change(present), expires: now + lifetimeMs });
    for (const [each, { expires }] of this.#held) if (expires <= now) this.#held.delete(each);
  }

  read(names: readonly string[]): readonly unknown[] {
    const now = this.now();
    return names.map((name) => {
      const held = this.#held.get(name);
      return held !== undefined && held.expires > now ? held.value : undefined;
    });
  }
}
