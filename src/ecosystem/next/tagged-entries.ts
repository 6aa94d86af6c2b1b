// Entries that can be made stale or invalid by tag, in all processes at once: what both cache handlers of Next stand on.
//
// An entry carries its tags, so that expiring a tag kills it. Beside it stands a mark of freshness with tags of its own:
// retiring a tag kills the mark, and an entry without its mark is stale. Whatever a store drops to make room thus makes an
// entry older, never younger. When a tag was last expired or retired is kept as well: for entries that do not carry the
// tag (those of `fetch` answer for paths they were not stored for), and for values that were begun before and arrive later.
import type { Clock } from "../../core/clock.ts";
import type { XCache } from "../../xcache.ts";

interface Kept<T> {
  readonly data: T;
  readonly tags: readonly string[];
  /** When the making of it began, in milliseconds since the epoch. */
  readonly begun: number;
}

interface Retirement {
  readonly at: number;
  /** From when on what is older may not be served at all. */
  readonly until: number;
}

export interface Found<T> {
  readonly data: T;
  /** To be served, and made anew meanwhile. */
  readonly isStale: boolean;
}

export interface EntryTerms {
  readonly tags: readonly string[];
  readonly begun: number;
  /** Seconds. */
  readonly ttl: number;
}

type Standing = "expired" | "stale" | "fresh";

const entryKey = (key: string): string => `entry:${key}`;
const freshKey = (key: string): string => `fresh:${key}`;
const expiredKey = (tag: string): string => `expired:${tag}`;
const retiredKey = (tag: string): string => `retired:${tag}`;
/** The tags of Next are printable, so none of them is one of these. */
const freshTag = (tag: string): string => `fresh\0${tag}`;

export class TaggedEntries {
  readonly #cache: XCache;
  readonly #clock: Clock;
  /** How long it is remembered that a tag was expired, in seconds: longer than any entry lives. */
  readonly #memory: number;

  constructor(cache: XCache, clock: Clock, longestTtl: number) {
    this.#cache = cache;
    this.#clock = clock;
    this.#memory = longestTtl;
  }

  /** `asked`: further tags that the reader wants it to be valid under. One round trip, two for what is stale. */
  async read<T>(key: string, asked: readonly string[]): Promise<Found<T> | undefined> {
    const found = await this.#cache.getMany([entryKey(key), freshKey(key), ...timeKeys(asked)]);
    const kept = found.get(entryKey(key)) as Kept<T> | undefined;
    if (kept === undefined) return undefined;
    const lacksMark = kept.tags.length > 0 && !found.has(freshKey(key));
    const standings = [this.#standing(asked, kept.begun, found)];
    if (lacksMark) standings.push(await this.#standingNow(kept.tags, kept.begun));
    if (standings.includes("expired")) return undefined;
    return { data: kept.data, isStale: lacksMark || standings.includes("stale") };
  }

  /** Stores nothing that a tag was expired under since it was begun, whichever process did so. */
  async write(key: string, data: unknown, { tags, begun, ttl }: EntryTerms): Promise<void> {
    const kept: Kept<unknown> = { data, tags, begun };
    if (tags.length === 0) return this.#cache.set(entryKey(key), kept, { ttl });
    if ((await this.#standingNow(tags, begun)) === "expired") return;
    await this.#cache.set(entryKey(key), kept, { ttl, tags });
    await this.#cache.set(freshKey(key), true, { ttl, tags: tags.map(freshTag) });
    // A tag that was expired before the entry got its stamps was noted before that, so it is seen now at the latest.
    const standing = await this.#standingNow(tags, begun);
    if (standing === "expired") await this.remove(key);
    else if (standing === "stale") await this.#cache.delete(freshKey(key));
  }

  async remove(key: string): Promise<void> {
    await this.#cache.delete([entryKey(key), freshKey(key)]);
  }

  /** What carries one of the tags is gone. */
  async expire(tags: readonly string[]): Promise<void> {
    const now = this.#clock.now();
    try {
      await this.#note(tags.map((tag) => [expiredKey(tag), now]));
    } finally {
      await this.#cache.invalidateTags(tags);
    }
  }

  /** What carries one of the tags is stale, and gone after `grace` seconds. */
  async retire(tags: readonly string[], grace = Number.POSITIVE_INFINITY): Promise<void> {
    if (grace <= 0) return this.expire(tags);
    const at = this.#clock.now();
    const retirement: Retirement = { at, until: at + grace * 1000 };
    try {
      await this.#note(tags.map((tag) => [retiredKey(tag), retirement]));
    } finally {
      await this.#cache.invalidateTags(tags.map(freshTag));
    }
  }

  #note(times: readonly (readonly [string, unknown])[]): Promise<void> {
    return this.#cache.setMany(times, { ttl: this.#memory });
  }

  async #standingNow(tags: readonly string[], begun: number): Promise<Standing> {
    return this.#standing(tags, begun, await this.#cache.getMany(timeKeys(tags)));
  }

  #standing(tags: readonly string[], begun: number, times: ReadonlyMap<string, unknown>): Standing {
    let standing: Standing = "fresh";
    for (const tag of tags) {
      const expired = times.get(expiredKey(tag)) as number | undefined;
      if (expired !== undefined && expired > begun) return "expired";
      const retired = times.get(retiredKey(tag)) as Retirement | undefined;
      if (retired === undefined || retired.at <= begun) continue;
      if (retired.until <= this.#clock.now()) return "expired";
      standing = "stale";
    }
    return standing;
  }
}

const timeKeys = (tags: readonly string[]): string[] =>
  tags.flatMap((tag) => [expiredKey(tag), retiredKey(tag)]);
