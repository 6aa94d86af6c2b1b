// typeorm's `cache` option: queries with `.cache()` are cached until a commit changes their tables.
import type { CacheForSessions } from "../../core/db-session.ts";
import { ANY_TABLE } from "../tracking/cached-tables.ts";
import { LibraryCache } from "../tracking/library-cache.ts";
import { trackSessions } from "../tracking/session.ts";
import { watchInPlace } from "./driver.ts";
import { type DataSource, driverOf, type QueryResultCache, type QueryResultCacheOptions } from "./library.ts";

export interface TypeormCacheOptions {
  readonly cache: CacheForSessions;
}

const ALL = "typeorm";

/**
 * Only marks the reads that typeorm looks up. They are read and stored where statements are sent, because typeorm does not
 * report commits and uses its cache inside transactions too.
 */
export class TypeormCache implements QueryResultCache {
  readonly #source: DataSource;
  readonly #cache: CacheForSessions;
  readonly #reads = new LibraryCache();

  constructor(source: DataSource, { cache }: TypeormCacheOptions) {
    this.#source = source;
    this.#cache = cache;
  }

  /** Called when the driver has connected. */
  async connect(): Promise<void> {
    const tracker = trackSessions({ cache: this.#cache, tables: [ANY_TABLE] });
    watchInPlace(driverOf(this.#source), this.#reads.tracker(tracker));
  }

  async disconnect(): Promise<void> {}

  async synchronize(): Promise<void> {}

  getFromCache({ identifier, duration, query }: QueryResultCacheOptions): Promise<undefined> {
    const tags = identifier ? [ALL, identifierTag(identifier)] : [ALL];
    const options = { tags, ttl: duration > 0 ? duration / 1_000 : undefined };
    // `query` is the statement followed by its parameters.
    return this.#reads.mark(options, (text) => text !== undefined && isSame(text, query));
  }

  async storeInCache(): Promise<void> {}

  isExpired(): boolean {
    return false;
  }

  clear(): Promise<void> {
    return this.#cache.invalidateTags([ALL]);
  }

  remove(identifiers: string[]): Promise<void> {
    return this.#cache.invalidateTags(identifiers.map(identifierTag));
  }
}

/** mysql2 sends the values in place of the placeholders. */
function isSame(text: string, query: string | undefined): boolean {
  if (query === undefined || query.startsWith(text)) return true;
  const first = query.indexOf("?");
  return first > 0 && text.startsWith(query.slice(0, first));
}

function identifierTag(identifier: string): string {
  return `${ALL}:${identifier}`;
}
