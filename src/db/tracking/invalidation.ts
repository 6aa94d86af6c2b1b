// Invalidations after commits: each stays pending until the cache confirms it; commits of unknown outcome are repeated.
import type { Clock, Timer } from "../../core/clock.ts";
import type { CacheForSessions } from "../../core/db-session.ts";

/** How long the invalidation of a commit with unknown outcome is repeated, unless the outcome becomes known. */
const UNKNOWN_FOR_MS = 60_000;
const REPEAT_MS = 1_000;

type Invalidator = Pick<CacheForSessions, "invalidateTags">;

export class Invalidations {
  readonly #cache: Invalidator;
  readonly #clock: Clock;
  /** Tags whose latest delivery the cache has not confirmed: reads that carry one are not served from the cache. */
  readonly #pending = new Map<string, object>();
  /** Deliveries whose tags are not known yet. */
  readonly #later = new Set<Promise<void>>();
  /** Commits that may still take effect: their tags, and when to stop repeating them. */
  readonly #unknown = new Map<object, { readonly tags: readonly string[]; readonly until: number }>();
  #timer: Timer | undefined;

  constructor(cache: Invalidator, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /** Never rejects: the commit has succeeded already, and the cache reports its own failures. */
  async deliver(tags: readonly string[]): Promise<void> {
    if (tags.length === 0) return;
    const delivery = {};
    for (const tag of tags) this.#pending.set(tag, delivery);
    try {
      await this.#cache.invalidateTags(tags);
      // A later commit may have the same tag: its own delivery is still unconfirmed.
      for (const tag of tags) if (this.#pending.get(tag) === delivery) this.#pending.delete(tag);
    } catch {
      // Stays pending: delivered again before the next read that carries it.
    }
  }

  /** For tags that are not known yet: until they are delivered, reads wait. */
  async deliverLater(tags: Promise<readonly string[]>): Promise<void> {
    const delivery = tags.then((known) => this.deliver(known));
    this.#later.add(delivery);
    await delivery.finally(() => this.#later.delete(delivery));
  }

  /** Whether no invalidation of these tags is pending, after retrying those that are. */
  async isDelivered(tags: readonly string[]): Promise<boolean> {
    if (this.#later.size > 0) await Promise.allSettled(this.#later);
    if (this.#pending.size === 0) return true;
    await this.deliver(tags.filter((tag) => this.#pending.has(tag)));
    return !tags.some((tag) => this.#pending.has(tag));
  }

  /**
   * For a commit of unknown outcome: it may take effect at any moment, so one invalidation is not enough. `resolved`
   * settles when it no longer can; true: the outcome is final.
   */
  async deliverUnknown(tags: readonly string[], resolved: Promise<boolean> | undefined): Promise<void> {
    if (tags.length === 0) return;
    const commit = {};
    this.#unknown.set(commit, { tags, until: this.#clock.now() + UNKNOWN_FOR_MS });
    this.#schedule();
    resolved?.then(
      (isOver) => {
        if (!isOver || !this.#unknown.delete(commit)) return undefined;
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
    for (const [commit, unknown] of this.#unknown) {
      for (const tag of unknown.tags) tags.add(tag);
      if (now >= unknown.until) this.#unknown.delete(commit);
    }
    if (this.#unknown.size > 0) this.#schedule();
    // deliver never rejects; nothing waits for a repetition.
    this.deliver([...tags]).catch(() => {});
  }
}

const invalidationsOf = new WeakMap<object, Invalidations>();

/** The one instance for a cache, shared by everything that watches sessions for it. */
export function invalidations(cache: Invalidator, clock: Clock): Invalidations {
  let found = invalidationsOf.get(cache);
  if (found === undefined) {
    found = new Invalidations(cache, clock);
    invalidationsOf.set(cache, found);
  }
  return found;
}
