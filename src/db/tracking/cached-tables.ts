// The tables whose reads are cached, with the tags and the lifetime of their entries.

import type { SessionScope, StatementTerms, TableSettings } from "../../core/db-session.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import { bareName, tableTag } from "./table-tag.ts";
import type { Writes } from "./transaction.ts";

/** In place of a name: all tables. Their reads carry its tag, for what may have written anything. */
export const ANY_TABLE = "*";

export class CachedTables {
  readonly #scope: SessionScope;
  readonly #named: ReadonlyMap<string, TableSettings>;

  constructor(scope: SessionScope) {
    this.#scope = scope;
    this.#named = new Map(scope.tables.map((table) => [bareName(table), settingsOf(scope, table)]));
  }

  get #isAny(): boolean {
    return this.#named.has(ANY_TABLE);
  }

  /** Whether all of them are cached tables, which is what a read must be of. */
  include(tables: readonly string[]): boolean {
    return this.#isAny || tables.every((table) => this.#named.has(table.toLowerCase()));
  }

  /** How a read of these tables is stored. What the cache does with old values elsewhere is not for sessions. */
  termsOf(
    tables: readonly string[],
    terms: StatementTerms = {},
  ): GetOrSetOptions & { readonly tags: readonly string[] } {
    const settings = tables.map(
      (table) => this.#named.get(table.toLowerCase()) ?? settingsOf(this.#scope, table),
    );
    const ttls = settings.flatMap(({ ttl }) => ttl ?? []);
    const ttl = terms.ttl ?? this.#scope.ttl ?? (ttls.length === 0 ? undefined : Math.min(...ttls));
    const tagged = this.#isAny ? [...tables, ANY_TABLE] : tables;
    const tags = [
      ...tagged.map(tableTag),
      ...settings.flatMap(({ tags = [] }) => tags),
      ...(terms.tags ?? []),
    ];
    return {
      tags: [...new Set(tags)],
      ...(ttl === undefined ? {} : { ttl }),
      staleIfError: 0,
      staleWhileRevalidate: 0,
    };
  }

  /** The tags of what was written, whether it is cached here or by others. */
  tagsOf(writes: Writes): readonly string[] {
    const tables = writes.anything ? [...writes.tables, ...this.#named.keys()] : [...writes.tables];
    return [...new Set(tables.map(tableTag))];
  }
}

/** Those under exactly this name come first, then those under one that differs in schema, quotes or case. */
function settingsOf({ cache: { tables = {} } }: SessionScope, table: string): TableSettings {
  if (Object.hasOwn(tables, table)) return tables[table] ?? {};
  const bare = bareName(table);
  const found = Object.entries(tables).find(([name]) => bareName(name) === bare);
  return found?.[1] ?? {};
}
