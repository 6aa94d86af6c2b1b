// The tables whose reads are cached, with the tags and ttl of their entries.
import type { SessionScope, StatementOptions, TableSettings } from "../../core/db-session.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import type { Writes } from "./transaction.ts";

/** Instead of a name: all tables. Reads then also carry its tag, for statements that may have written any table. */
export const ANY_TABLE = "*";

export class CachedTables {
  readonly #scope: SessionScope;
  readonly #named: ReadonlyMap<string, TableSettings>;

  constructor(scope: SessionScope) {
    this.#scope = scope;
    this.#named = new Map(
      scope.tables.map((table) => {
        const isConfigured = Object.hasOwn(scope.cache.tables ?? {}, table);
        return [bareName(table), settingsOf(scope, isConfigured ? table : bareName(table))];
      }),
    );
  }

  get #isAny(): boolean {
    return this.#named.has(ANY_TABLE);
  }

  /** Whether a read of exactly these tables may be cached. */
  include(tables: readonly string[]): boolean {
    return this.#isAny || tables.every((table) => this.#named.has(table.toLowerCase()));
  }

  /** How a read of these tables is stored. Stale values are never served to a session, whatever the cache defaults to. */
  optionsFor(
    tables: readonly string[],
    options: StatementOptions = {},
  ): GetOrSetOptions & { readonly tags: readonly string[] } {
    const settings = tables.map(
      (table) => this.#named.get(table.toLowerCase()) ?? settingsOf(this.#scope, table),
    );
    const ttls = settings.flatMap(({ ttl }) => ttl ?? []);
    const ttl = options.ttl ?? this.#scope.ttl ?? (ttls.length === 0 ? undefined : Math.min(...ttls));
    const tagged = this.#isAny ? [...tables, ANY_TABLE] : tables;
    const tags = [
      ...tagged.map(tagOf),
      ...settings.flatMap(({ tags = [] }) => tags),
      ...(options.tags ?? []),
    ];
    return {
      tags: [...new Set(tags)],
      ...(ttl === undefined ? {} : { ttl }),
      staleIfError: 0,
      staleWhileRevalidate: 0,
    };
  }

  /** The tags of the written tables, whether they are cached here or elsewhere. */
  tagsOf(writes: Writes): readonly string[] {
    const tables = writes.anything ? [...writes.tables, ...this.#named.keys()] : [...writes.tables];
    return [...new Set(tables.map(tagOf))];
  }
}

/** The tag of a table by its name alone, as a statement has it: a dot in it is part of the name. */
function tagOf(name: string): string {
  return `table:${name.toLowerCase()}`;
}

/** An exact name wins over one that differs in schema, quotes or case. */
function settingsOf({ cache: { tables = {} } }: SessionScope, table: string): TableSettings {
  if (Object.hasOwn(tables, table)) return tables[table] ?? {};
  const bare = table.toLowerCase();
  const found = Object.entries(tables).find(([name]) => bareName(name) === bare);
  return found?.[1] ?? {};
}

/**
 * The tag that reads of a table carry: for `invalidateTags`, or for `tables.<name>.tags` of a table that changes with it.
 * Schema and case are ignored: `tableTag('App."User"')` equals `tableTag("user")`.
 */
export function tableTag(table: string): string {
  return tagOf(bareName(table));
}

/** In lower case, without schema and quotes. */
function bareName(table: string): string {
  const last = /(?:"((?:[^"]|"")+)"|[^".]+)$/.exec(table);
  const name = last === null ? table : (last[1]?.replaceAll('""', '"') ?? last[0]);
  return name.toLowerCase();
}
