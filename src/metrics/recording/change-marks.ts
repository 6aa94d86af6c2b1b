// What charts are marked with: invalidations by what was invalidated, bounded, and changes of state.
import type { Invalidation } from "../../core/namespace.ts";

/** Tags counted separately until the next report; the rest count as other. */
export const MOST_TAGS = 100;
const LONGEST_TAG = 200;

/** What an invalidation was of, other than a tag. A tag is marked by a leading `#`. */
const PATTERN = "pattern";
const CLEAR = "clear";
export const OTHER_TAGS = "other";

export type StateKind = "connection" | "circuit_breaker";

export class ChangeMarks {
  #invalidations = new Map<string, number>();
  /** When this process last invalidated a tag; the oldest are forgotten. */
  readonly #latest = new Map<string, number>();
  #clearedAt: number | undefined;
  /** Called for every change of state. */
  onState: ((what: StateKind, state: string) => void) | undefined;

  /** `now`: milliseconds since the epoch. */
  invalidated({ tags, all }: { readonly tags?: readonly string[]; readonly all?: true }, now: number): void {
    if (tags === undefined) this.#count(all ? CLEAR : PATTERN);
    else for (const tag of tags) this.#count(this.#nameOf(tag));
    if (all) this.#clearedAt = now;
    for (const tag of tags ?? []) {
      this.#latest.delete(tag);
      this.#latest.set(tag, now);
    }
    for (const tag of this.#latest.keys()) {
      if (this.#latest.size <= MOST_TAGS) break;
      this.#latest.delete(tag);
    }
  }

  /** When this process last did it; undefined: not as far as it remembers. */
  lastInvalidated({ tags, isCleared }: Invalidation): number | undefined {
    const times = tags.map((tag) => this.#latest.get(tag) ?? 0);
    const latest = Math.max(0, ...times, (isCleared ? this.#clearedAt : undefined) ?? 0);
    return latest === 0 ? undefined : latest;
  }

  changed(what: StateKind, state: string): void {
    this.onState?.(what, state);
  }

  /** By tag, marked by `#`, or `pattern`, `clear`, `other`: since the last call. */
  take(): ReadonlyMap<string, number> {
    const taken = this.#invalidations;
    this.#invalidations = new Map();
    return taken;
  }

  #nameOf(tag: string): string {
    const name = `#${tag}`;
    const isCounted = this.#invalidations.has(name) || this.#invalidations.size < MOST_TAGS;
    return isCounted && tag.length <= LONGEST_TAG ? name : OTHER_TAGS;
  }

  #count(name: string): void {
    this.#invalidations.set(name, (this.#invalidations.get(name) ?? 0) + 1);
  }
}
