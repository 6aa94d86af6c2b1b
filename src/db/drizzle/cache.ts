// drizzle's `cache` option: results of `$withCache()` are cached until a commit changes their tables.
import type { CacheForSessions, SessionTracker } from "../../core/db-session.ts";
import type { Duration } from "../../core/duration.ts";
import { ttlToMs } from "../../core/entry-options.ts";
import { wrongArgument } from "../tracking/argument-checks.ts";
import { ANY_TABLE } from "../tracking/cached-tables.ts";
import { LibraryCache } from "../tracking/library-cache.ts";
import { trackSessions } from "../tracking/session.ts";
import { tableTag } from "../tracking/table-tags.ts";

export interface DrizzleCacheOptions {
  readonly cache: CacheForSessions;
  /** Seconds or a text such as "5m". Default: the smallest ttl of the tables read, else the cache's `defaultTtl`. */
  readonly ttl?: Duration;
  /** Cache every query, not only those with `$withCache()`. Default: false. */
  readonly global?: boolean;
}

/** A drizzle table, described structurally: drizzle declares its classes once for import and once for require. */
export interface DrizzleTable {
  readonly _: { readonly brand: "Table" };
}

/** What `invalidate` takes: tables by name or as drizzle objects, and tags. */
export interface DrizzleChange {
  readonly tables?: string | DrizzleTable | readonly (string | DrizzleTable)[];
  readonly tags?: string | readonly string[];
}

const TABLE_NAME = Symbol.for("drizzle:Name");

/**
 * Only marks the reads that drizzle looks up. They are read and stored where statements are sent, because drizzle reports
 * writes before they are committed and uses its cache inside transactions too.
 */
export class DrizzleCache {
  readonly tracker: SessionTracker;
  declare invalidate: (change: DrizzleChange) => Promise<void>;
  readonly #cache: CacheForSessions;
  readonly #isGlobal: boolean;
  readonly #reads = new LibraryCache();

  constructor({ cache, ttl, global = false }: DrizzleCacheOptions) {
    this.#cache = cache;
    this.#isGlobal = global;
    const scope = { cache, tables: [ANY_TABLE], ...(ttl === undefined ? {} : { ttl: ttlToMs(ttl) / 1_000 }) };
    this.tracker = this.#reads.tracker(trackSessions(scope));
    let invalidate: DrizzleCache["invalidate"] = (change) => this.#invalidate(change);
    Object.defineProperty(this, "invalidate", {
      configurable: true,
      enumerable: true,
      get: () => invalidate,
      // drizzle assigns `onMutate`, which it also calls before a commit: that is ignored. Others replace it.
      set: (given: typeof invalidate) => {
        if (given !== this.onMutate) invalidate = given;
      },
    });
  }

  strategy(): "explicit" | "all" {
    return this.#isGlobal ? "all" : "explicit";
  }

  get(key: string, _tables: string[], isTag: boolean): Promise<undefined> {
    return this.#reads.mark({ tags: isTag ? [key] : [] });
  }

  async put(): Promise<void> {}

  async onMutate(): Promise<void> {}

  /** Behind `db.$cache.invalidate({ tables, tags })`. */
  async #invalidate({ tables = [], tags = [] }: DrizzleChange): Promise<void> {
    const ofTables = [tables].flat().map((table) => tableTag(nameOf(table)));
    await this.#cache.invalidateTags([...ofTables, ...[tags].flat()]);
  }
}

function nameOf(table: string | DrizzleTable): string {
  const name =
    typeof table === "string" ? table : (table as { readonly [TABLE_NAME]?: unknown })?.[TABLE_NAME];
  if (typeof name === "string") return name;
  throw wrongArgument("drizzleCache().invalidate", "a drizzle table or its name", table);
}
