// drizzle's `cache` option: results of `$withCache()` are cached, and dropped when a commit has changed their tables.
import type { Cache } from "drizzle-orm/cache/core";
import type { CacheForSessions, SessionTracker } from "../../core/db-session.ts";
import { ANY_TABLE } from "../tracking/cached-tables.ts";
import { notWanted } from "../tracking/handed-over.ts";
import { LibraryCache } from "../tracking/library-cache.ts";
import { trackSessions } from "../tracking/session.ts";
import { tableTag } from "../tracking/table-tag.ts";

export interface DrizzleCacheOptions {
  readonly cache: CacheForSessions;
  /** Seconds. Default: the smallest of the tables', else the cache's `defaultTtl`. */
  readonly ttl?: number;
  /** Whether every query is cached, not only those with `$withCache()`. Default: false. */
  readonly global?: boolean;
}

/** A table as drizzle declares it, once for import and once for require. */
export interface DrizzleTable {
  readonly _: { readonly brand: "Table" };
}

/** What `invalidate` is told: tables by name or as drizzle has them, and tags. */
export interface DrizzleChange {
  readonly tables?: string | DrizzleTable | readonly (string | DrizzleTable)[];
  readonly tags?: string | readonly string[];
}

const TABLE_NAME = Symbol.for("drizzle:Name");

/**
 * Only marks what drizzle asks for. It is read and stored where statements are sent: drizzle itself tells of writes
 * before they are committed, and asks within transactions as well.
 */
export class DrizzleCache implements Cache {
  readonly tracker: SessionTracker;
  readonly #cache: CacheForSessions;
  readonly #isGlobal: boolean;
  readonly #reads = new LibraryCache();

  constructor({ cache, ttl, global = false }: DrizzleCacheOptions) {
    this.#cache = cache;
    this.#isGlobal = global;
    const scope = { cache, tables: [ANY_TABLE], ...(ttl === undefined ? {} : { ttl }) };
    this.tracker = this.#reads.tracker(trackSessions(scope));
  }

  strategy(): "explicit" | "all" {
    return this.#isGlobal ? "all" : "explicit";
  }

  get(key: string, _tables: string[], isTag: boolean): Promise<undefined> {
    return this.#reads.mark({ tags: isTag ? [key] : [] });
  }

  async put(): Promise<void> {}

  async onMutate(): Promise<void> {}

  /** As `db.$cache.invalidate({ tables, tags })`. */
  get invalidate(): (change: DrizzleChange) => Promise<void> {
    return async ({ tables = [], tags = [] }) =>
      this.#cache.invalidateTags([
        ...[tables].flat().map((table) => tableTag(nameOf(table))),
        ...[tags].flat(),
      ]);
  }

  /** drizzle puts `onMutate` here. */
  set invalidate(_: (change: DrizzleChange) => Promise<void>) {}
}

function nameOf(table: string | DrizzleTable): string {
  const name =
    typeof table === "string" ? table : (table as { readonly [TABLE_NAME]?: unknown })?.[TABLE_NAME];
  if (typeof name === "string") return name;
  throw notWanted("drizzleCache().invalidate", "a table of drizzle or its name", table);
}
