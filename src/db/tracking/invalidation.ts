// Invalidations that follow commits: each is delivered, or owed until it is; those of unknown outcome are repeated.
import type { Clock, Timer } from "../../core/clock.ts";
import type { CacheForSessions } from "../../core/db-session.ts";

/** How long a commit whose outcome is not known is invalidated again, unless it becomes known. */
const UNKNOWN_FOR_MS = 60_000;
const REPEAT_MS = 1_000;

type Invalidator = Pick<CacheForSessions, "invalidateTags">;

export class Invalidations {
  readonly #cache: Invalidator;
  readonly #clock: Clock;
  /** Not confirmed by the cache yet, by their latest delivery: nothing that carries them is served from here. */
  readonly #owed = new Map<string, object>();
  /** Tags of commits that may still take effect, and until when that is believed. */
  readonly #open = new Map<object, { readonly tags: readonly string[]; readonly until: number }>();
  #timer: Timer | undefined;

  constructor(cache: Invalidator, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /** Never rejects: the commit has succeeded, whatever becomes of this. The cache itself tells of its failures. */
  async deliver(tags: readonly string[]): Promise<void> {
    if (tags.length === 0) return;
    const delivery = {};
    for (const tag of tags) this.#owed.set(tag, delivery);
    try {
      await this.#cache.invalidateTags(tags);
      // It may have taken effect before a later commit, whose own delivery is still to be confirmed.
      for (const tag of tags) if (this.#owed.get(tag) === delivery) this.#owed.delete(tag);
    } catch {
      // Owed: settled before the next read of it.
    }
  }

  /** Whether everything about these tags has been delivered, after another attempt if need be. */
  async isSettled(tags: readonly string[]): Promise<boolean> {
    if (this.#owed.size === 0) return true;
    await this.deliver(tags.filter((tag) => this.#owed.has(tag)));
    return !tags.some((tag) => this.#owed.has(tag));
  }

  /**
   * For a commit whose outcome is not known: it may take effect at any moment, so one invalidation is not enough.
   * `resolved` says when it cannot any more; true: it is known to be over.
   */
  async deliverUnknown(tags: readonly string[], resolved: Promise<boolean> | undefined): Promise<void> {
    if (tags.length === 0) return;
    const commit = {};
    this.#open.set(commit, { tags, until: this.#clock.now() + UNKNOWN_FOR_MS });
    this.#schedule();
    resolved?.then(
      (isOver) => {
        if (!isOver || !this.#open.delete(commit)) return undefined;
        return this.deliver(tags);
      },
      () => undefined,
    );
    await this.deliver(tags);
  }

  #schedule(): void {
    this.#timer ??= this.#clock.after(REPEAT_MS, () => this.#repeat());
  }

  #repeat(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const tags = new Set<string>();
    for (const [commit, open] of this.#open) {
      for (const tag of open.tags) tags.add(tag);
      if (now >= open.until) this.#open.delete(commit);
    }
    if (this.#open.size > 0) this.#schedule();
    // It cannot reject, and nobody waits for it.
    this.deliver([...tags]).catch(() => {});
  }
}

const invalidationsOf = new WeakMap<object, Invalidations>();

/** Those of a cache, shared by everything that watches sessions for it. */
export function invalidations(cache: Invalidator, clock: Clock): Invalidations {
  let found = invalidationsOf.get(cache);
  if (found === undefined) {
    found = new Invalidations(cache, clock);
    invalidationsOf.set(cache, found);
  }
  return found;
}
