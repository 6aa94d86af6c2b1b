// typeorm's `cache` option: queries with `.cache()` are cached, and dropped when a commit has changed their tables.
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
 * Only marks what typeorm asks for. It is read and stored where statements are sent: typeorm itself does not know of
 * commits, and asks within transactions as well.
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
    const terms = { tags, ttl: duration > 0 ? duration / 1_000 : undefined };
    // Behind the statement stand its parameters.
    return this.#reads.mark(terms, (text) => text !== undefined && query?.startsWith(text) !== false);
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

function identifierTag(identifier: string): string {
  return `${ALL}:${identifier}`;
}
