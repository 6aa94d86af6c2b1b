// Reads answered from the cache or loaded into it. When the cache fails, the read goes to the database.
import type {
  CacheForSessions,
  PooledStatement,
  SessionStatement,
  StatementOptions,
} from "../../core/db-session.ts";
import { peekInto } from "../../core/sync-peek.ts";
import type { Statement } from "../sql/statement.ts";
import type { CachedTables } from "./cached-tables.ts";
import { sql } from "./connection-state.ts";
import type { Invalidations } from "./invalidation.ts";
import { readKey } from "./read-key.ts";
import { areShareable, type Names, type Settings, sourcesOf } from "./settings.ts";

/** A statement that may be answered from the cache. */
export interface CacheableRead<Result> {
  readonly text: string;
  readonly values: readonly unknown[];
  /** As the statement names them. */
  readonly names: Names;
  readonly statement: Statement;
  readonly options: StatementOptions | undefined;
  /** The tag of the one row that it can return. Its result is stored only if there is such a row. */
  readonly row: string | undefined;
  restore(data: unknown): Result | undefined;
}

/** Whether the read may be cached under these settings. */
export function isShareable(
  { statement, names }: Pick<CacheableRead<unknown>, "statement" | "names">,
  settings: Settings,
): boolean {
  if (!areShareable(settings, names.tables)) return false;
  return sql().settled(statement, (name) => settings.functions.get(name) ?? "own").kind === "read";
}

/** What the database returned, and whether every reader of the same key would get the same. */
export interface Fetched {
  readonly data: unknown;
  readonly isShareable: boolean;
}

interface Answer<Result> {
  readonly result: Result;
}

interface Plan {
  readonly key: string;
  readonly options: ReturnType<CachedTables["optionsFor"]>;
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

  /** The read, if the text is a single read of cached tables only. */
  readOf<Result>(
    { text, values = [], options }: Pick<SessionStatement<Result>, "text" | "values" | "options">,
    restore: PooledStatement<Result>["restore"],
    statements: readonly Statement[],
  ): CacheableRead<Result> | undefined {
    const [only] = statements;
    if (text === undefined || restore === undefined || statements.length !== 1 || only?.kind !== "read") {
      return undefined;
    }
    // Values that are not an array are left to the driver, which has its own error for them.
    if (!Array.isArray(values) || !this.#tables.include(only.tables)) return undefined;
    const names = {
      tables: only.tables,
      functions: sql()
        .callsOf(only)
        .map(({ name }) => name),
    };
    const row = this.#tables.rowOf(only.tables[0] ?? "", only.point, values);
    return { text, values, names, statement: only, options, row, restore };
  }

  /**
   * For a caller that holds a connection: it never waits for another caller's load, because that load may wait for this
   * connection or for a lock of its transaction. undefined: the cache cannot be used now.
   */
  async whileConnected<Result>(
    read: CacheableRead<Result>,
    settings: Settings,
    fetch: () => Promise<Fetched>,
  ): Promise<Answer<Result> | undefined> {
    const plan = await this.#plan(read, settings);
    if (plan === undefined) return undefined;
    try {
      // The load that follows a miss counts it.
      const data = await (peekInto(this.#cache)?.find(plan.key) ?? this.#cache.get(plan.key));
      if (data !== undefined) {
        const result = read.restore(data);
        if (result !== undefined) return { result };
      }
    } catch {
      return undefined;
    }
    return this.#load(read, plan, fetch, true);
  }

  /** For a caller without a connection: concurrent reads share one load. undefined: the cache cannot be used now. */
  async fromPool<Result>(
    read: CacheableRead<Result>,
    settings: Settings,
    fetch: () => Promise<Fetched>,
  ): Promise<Answer<Result> | undefined> {
    const plan = await this.#plan(read, settings);
    return plan === undefined ? undefined : this.#load(read, plan, fetch, false);
  }

  async #plan<Result>(
    { text, values, names: { tables }, options: own, row }: CacheableRead<Result>,
    settings: Settings,
  ): Promise<Plan | undefined> {
    const { fingerprint } = settings;
    const sources = sourcesOf(settings, tables);
    if (!this.#tables.areServed(sources)) return undefined;
    // What is more than one table in the database, such as partitions, does not tell of its rows by the name that was read.
    const isOneTable = sources.length === 1 && sources[0]?.toLowerCase() === tables[0]?.toLowerCase();
    const options = this.#tables.optionsFor(sources, own, isOneTable ? row : undefined);
    // Other tags make another entry: invalidating them would not drop one that was stored without them. So does another
    // ttl: nobody is answered from an entry that lives longer than asked for.
    const scope = JSON.stringify([fingerprint, options.ttl ?? null, ...options.tags]);
    const key = readKey(scope, text, values, tables);
    if (key === undefined || !(await this.#invalidations.isDelivered(options.tags))) return undefined;
    return { key, options };
  }

  async #load<Result>(
    read: CacheableRead<Result>,
    { key, options }: Plan,
    fetch: () => Promise<Fetched>,
    forceLoad: boolean,
  ): Promise<Answer<Result> | undefined> {
    let fetching: Promise<Fetched> | undefined;
    let data: unknown;
    try {
      // The load declares no parameter, so the cache knows that all tags are given up front. undefined is not stored.
      data = await this.#cache.getOrSet(
        key,
        async () => {
          fetching = fetch();
          const fetched = await fetching;
          const isStored = fetched.isShareable && (read.row === undefined || hasRow(fetched.data));
          return isStored ? fetched.data : undefined;
        },
        { ...options, forceLoad },
      );
    } catch {
      // An error of its own load is rethrown below. After another caller's failure it queries the database itself.
    }
    if (fetching !== undefined) data = (await fetching).data;
    if (data === undefined) return undefined;
    const result = read.restore(data);
    return result === undefined ? undefined : { result };
  }
}

/** Whether a result has a row, in the form of any library. An unknown form counts as empty. */
function hasRow(data: unknown): boolean {
  const rows = Array.isArray(data) ? data : (data as { readonly rows?: unknown } | null)?.rows;
  return typeof rows === "number" ? rows > 0 : Array.isArray(rows) && rows.length > 0;
}

/** Larger results would hold the event loop while they are stored. About as many bytes. */
const LARGEST_RESULT = 4_000_000;

/** Whether a result is small enough to be cached. */
export function isBounded(data: unknown): boolean {
  return sizeLeft(data, LARGEST_RESULT) > 0;
}

function sizeLeft(value: unknown, size: number): number {
  if (typeof value === "string") return size - value.length;
  if (typeof value !== "object" || value === null) return size - 8;
  if (ArrayBuffer.isView(value)) return size - value.byteLength;
  let left = size - 8;
  for (const each of Array.isArray(value) ? value : Object.values(value)) {
    left = sizeLeft(each, left);
    if (left <= 0) break;
  }
  return left;
}
