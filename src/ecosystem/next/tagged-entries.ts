// Entries that can be expired or made stale by tag in all processes at once; the basis of both Next cache handlers.
//
// An entry carries its tags, so expiring a tag invalidates it. A separate freshness marker carries tags of its own: retiring
// a tag invalidates the marker, and an entry without its marker is stale. An eviction can therefore make an entry older but
// never younger. The time at which a tag was last expired or retired is stored as well. It covers entries that do not carry
// the tag (`fetch` data is read under paths it was not stored for) and values whose generation began before the invalidation.
import type { Clock } from "../../core/clock.ts";
import type { XCache } from "../../xcache.ts";

interface Kept<T> {
  readonly data: T;
  readonly tags: readonly string[];
  /** When its generation began, in milliseconds since the epoch. */
  readonly begun: number;
}

interface Retirement {
  readonly at: number;
  /** From this time on, older entries must not be served at all. */
  readonly until: number;
}

export interface FoundEntry<T> {
  readonly data: T;
  /** May be served while it is regenerated. */
  readonly isStale: boolean;
}

export interface TaggedEntryOptions {
  readonly tags: readonly string[];
  readonly begun: number;
  /** Seconds. */
  readonly ttl: number;
}

type TagState = "expired" | "stale" | "fresh";

const entryKey = (key: string): string => `entry:${key}`;
const freshKey = (key: string): string => `fresh:${key}`;
const expiredKey = (tag: string): string => `expired:${tag}`;
const retiredKey = (tag: string): string => `retired:${tag}`;
/** Next's tags are printable, so none can collide with these. */
const freshTag = (tag: string): string => `fresh\0${tag}`;

export class TaggedEntries {
  readonly #cache: XCache;
  readonly #clock: Clock;
  /** Seconds for which the times of tags are stored: at least as long as any entry lives. */
  readonly #tagMemory: number;

  constructor(cache: XCache, clock: Clock, longestTtl: number) {
    this.#cache = cache;
    this.#clock = clock;
    this.#tagMemory = longestTtl;
  }

  /** `requiredTags`: further tags under which the entry must be valid. One round trip, two for a stale entry. */
  async read<T>(key: string, requiredTags: readonly string[]): Promise<FoundEntry<T> | undefined> {
    const found = await this.#cache.getMany([entryKey(key), freshKey(key), ...timeKeys(requiredTags)]);
    const kept = found.get(entryKey(key)) as Kept<T> | undefined;
    if (kept === undefined) return undefined;
    const lacksMark = kept.tags.length > 0 && !found.has(freshKey(key));
    const states = [this.#tagState(requiredTags, kept.begun, found)];
    if (lacksMark) states.push(await this.#currentTagState(kept.tags, kept.begun));
    if (states.includes("expired")) return undefined;
    return { data: kept.data, isStale: lacksMark || states.includes("stale") };
  }

  /** Does not store the entry if any process expired one of its tags since its generation began. */
  async write(key: string, data: unknown, { tags, begun, ttl }: TaggedEntryOptions): Promise<void> {
    const kept: Kept<unknown> = { data, tags, begun };
    if (tags.length === 0) return this.#cache.set(entryKey(key), kept, { ttl });
    if ((await this.#currentTagState(tags, begun)) === "expired") return;
    await this.#cache.set(entryKey(key), kept, { ttl, tags });
    await this.#cache.set(freshKey(key), true, { ttl, tags: tags.map(freshTag) });
    // Expiring records the time before it replaces the stamp. A tag expired before the entry got its stamps is thus seen here.
    const tagState = await this.#currentTagState(tags, begun);
    if (tagState === "expired") await this.remove(key);
    else if (tagState === "stale") await this.#cache.delete(freshKey(key));
  }

  async remove(key: string): Promise<void> {
    await this.#cache.delete([entryKey(key), freshKey(key)]);
  }

  /** Invalidates every entry that carries one of the tags. */
  async expire(tags: readonly string[]): Promise<void> {
    const now = this.#clock.now();
    try {
      await this.#note(tags.map((tag) => [expiredKey(tag), now]));
    } finally {
      await this.#cache.invalidateTags(tags);
    }
  }

  /** Makes every entry that carries one of the tags stale, and invalid after `grace` seconds. */
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
    return this.#cache.setMany(times, { ttl: this.#tagMemory });
  }

  async #currentTagState(tags: readonly string[], begun: number): Promise<TagState> {
    return this.#tagState(tags, begun, await this.#cache.getMany(timeKeys(tags)));
  }

  #tagState(tags: readonly string[], begun: number, times: ReadonlyMap<string, unknown>): TagState {
    let tagState: TagState = "fresh";
    for (const tag of tags) {
      const expired = times.get(expiredKey(tag)) as number | undefined;
      if (expired !== undefined && expired > begun) return "expired";
      const retired = times.get(retiredKey(tag)) as Retirement | undefined;
      if (retired === undefined || retired.at <= begun) continue;
      if (retired.until <= this.#clock.now()) return "expired";
      tagState = "stale";
    }
    return tagState;
  }
}

const timeKeys = (tags: readonly string[]): string[] =>
  tags.flatMap((tag) => [expiredKey(tag), retiredKey(tag)]);
