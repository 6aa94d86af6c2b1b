// Reads answered from the cache, or loaded into it. Whatever goes wrong with the cache, the read goes to the database.
import type {
  CacheForSessions,
  PooledStatement,
  SessionStatement,
  StatementTerms,
} from "../../core/db-session.ts";
import type { Statement } from "../sql/statement.ts";
import type { CachedTables } from "./cached-tables.ts";
import type { Invalidations } from "./invalidation.ts";
import { readKey } from "./read-key.ts";
import type { Settings } from "./settings.ts";

/** A statement that may be answered from the cache. */
export interface CacheableRead<Result> {
  readonly text: string;
  readonly values: readonly unknown[];
  /** As the statement names them. */
  readonly tables: readonly string[];
  readonly terms: StatementTerms | undefined;
  restore(data: unknown): Result | undefined;
}

/** What a database returned, and whether others under the same key would have got the same. */
export interface Fetched {
  readonly data: unknown;
  readonly isShareable: boolean;
}

interface Answer<Result> {
  readonly result: Result;
}

interface Plan {
  readonly key: string;
  readonly terms: ReturnType<CachedTables["termsOf"]>;
}

export class ReadCache {
  readonly #cache: CacheForSessions;
  readonly #tables: CachedTables;
  readonly #invalidations: Invalidations;

  constructor(cache: CacheForSessions, tables: CachedTables, invalidations: Invalidations) {
    this.#cache = cache;
    this.#tables = tables;
    this.#invalidations = invalidations;
  }

  /** The read of these statements, when it is one and of cached tables only. */
  readOf<Result>(
    { text, values = [], terms }: Pick<SessionStatement<Result>, "text" | "values" | "terms">,
    restore: PooledStatement<Result>["restore"],
    statements: readonly Statement[],
  ): CacheableRead<Result> | undefined {
    const [only] = statements;
    if (text === undefined || restore === undefined || statements.length !== 1 || only?.kind !== "read") {
      return undefined;
    }
    // The driver has its own words for values that are no list.
    if (!Array.isArray(values) || !this.#tables.include(only.tables)) return undefined;
    return { text, values, tables: only.tables, terms, restore };
  }

  /**
   * For somebody who holds a connection: waits for no load but its own, since that may be waiting for this connection,
   * or for a lock that its transaction has. undefined: the cache is of no use now.
   */
  async whileHolding<Result>(
    read: CacheableRead<Result>,
    settings: Settings,
    fetch: () => Promise<Fetched>,
  ): Promise<Answer<Result> | undefined> {
    const plan = await this.#plan(read, settings);
    if (plan === undefined) return undefined;
    try {
      const data = await this.#cache.get(plan.key);
      if (data !== undefined) {
        const result = read.restore(data);
        if (result !== undefined) return { result };
      }
    } catch {
      return undefined;
    }
    return this.#load(read, plan, fetch, true);
  }

  /** For somebody who holds nothing: one load for all who ask at the same time. undefined: the cache is of no use now. */
  async whileFree<Result>(
    read: CacheableRead<Result>,
    settings: Settings,
    fetch: () => Promise<Fetched>,
  ): Promise<Answer<Result> | undefined> {
    const plan = await this.#plan(read, settings);
    return plan === undefined ? undefined : this.#load(read, plan, fetch, false);
  }

  async #plan<Result>(
    { text, values, tables, terms: own }: CacheableRead<Result>,
    { fingerprint }: Settings,
  ): Promise<Plan | undefined> {
    const terms = this.#tables.termsOf(tables, own);
    // With other tags it is another entry: one that was stored without them would not be dropped by them.
    const key = readKey(JSON.stringify([fingerprint, ...(own?.tags ?? [])]), text, values, tables);
    if (key === undefined || !(await this.#invalidations.isSettled(terms.tags))) return undefined;
    return { key, terms };
  }

  async #load<Result>(
    read: CacheableRead<Result>,
    { key, terms }: Plan,
    fetch: () => Promise<Fetched>,
    forceLoad: boolean,
  ): Promise<Answer<Result> | undefined> {
    let fetching: Promise<Fetched> | undefined;
    let data: unknown;
    try {
      // Without a parameter: the cache then knows that its tags are all named beforehand. Nothing is stored of undefined.
      data = await this.#cache.getOrSet(
        key,
        async () => {
          fetching = fetch();
          const fetched = await fetching;
          return fetched.isShareable ? fetched.data : undefined;
        },
        { ...terms, forceLoad },
      );
    } catch {
      // Of its own load the caller hears below. Another's failure is not its own: it asks the database itself.
    }
    if (fetching !== undefined) data = (await fetching).data;
    if (data === undefined) return undefined;
    const result = read.restore(data);
    return result === undefined ? undefined : { result };
  }
}
