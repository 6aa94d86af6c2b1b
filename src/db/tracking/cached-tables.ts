// The tables whose reads are cached, with the tags and ttl of their entries.
import type { SessionScope, StatementOptions, TableSettings } from "../../core/db-session.ts";
import type { GetOrSetOptions } from "../../core/options.ts";
import type { PointRead } from "../sql/point-read.ts";
import type { Statement } from "../sql/statement.ts";
import { bareName, pointTag, rowsTagOfTable, tagOfTable } from "./table-tags.ts";
import type { Writes } from "./transaction.ts";

/** Instead of a name: all tables. Reads then also carry its tag, for statements that may have written any table. */
export const ANY_TABLE = "*";

/** Fewer may be those of a program's start. */
const STATEMENTS_UNTIL_WARNING = 1_000;

export class CachedTables {
  readonly #scope: SessionScope;
  readonly #named: ReadonlyMap<string, TableSettings>;
  /** Those of the named tables that no statement has named yet. */
  readonly #unseen: Set<string>;
  #statements = 0;

  constructor(scope: SessionScope) {
    this.#scope = scope;
    this.#named = new Map(
      scope.tables.map((table) => {
        const isConfigured = Object.hasOwn(scope.cache.tables ?? {}, table);
        return [bareName(table), settingsOf(scope, isConfigured ? table : bareName(table))];
      }),
    );
    this.#unseen = new Set([...this.#named.keys()].filter((name) => name !== ANY_TABLE));
  }

  get #isAny(): boolean {
    return this.#named.has(ANY_TABLE);
  }

  /** Call it with the tables of each statement: a name that none of the first ones has is probably misspelt. */
  note(statements: readonly Statement[]): void {
    if (this.#unseen.size === 0) return;
    for (const statement of statements) {
      if ("tables" in statement)
        for (const table of statement.tables) this.#unseen.delete(table.toLowerCase());
    }
    if (++this.#statements < STATEMENTS_UNTIL_WARNING || this.#unseen.size === 0) return;
    const names = [...this.#unseen].join(", ");
    this.#unseen.clear();
    process.emitWarning(
      `none of ${STATEMENTS_UNTIL_WARNING} statements was a plain read or a write of ${names}. ` +
        "Check tableName: it should be the name of the table in SQL.",
      { code: "XCACHE_TABLE_UNSEEN" },
    );
  }

  /** Whether a read of exactly these tables may be cached. */
  include(tables: readonly string[]): boolean {
    return this.#isAny || tables.every((table) => this.#named.has(table.toLowerCase()));
  }

  /** How a read of these tables is stored. Stale values are never served to a session, whatever the cache defaults to. */
  optionsFor(
    tables: readonly string[],
    options: StatementOptions = {},
    row?: string,
  ): GetOrSetOptions & { readonly tags: readonly string[] } {
    const settings = tables.map(
      (table) => this.#named.get(table.toLowerCase()) ?? settingsOf(this.#scope, table),
    );
    const ttls = settings.flatMap(({ ttl }) => ttl ?? []);
    const ttl = options.ttl ?? this.#scope.ttl ?? (ttls.length === 0 ? undefined : Math.min(...ttls));
    const tagged = this.#isAny ? [...tables, ANY_TABLE] : tables;
    const tags = [
      ...(row === undefined ? tagged.map(tagOfTable) : [row, ...tagged.map(rowsTagOfTable)]),
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
    // Which rows a statement has written is not known.
    const rows = this.#scope.feed?.rows ? tables.map(rowsTagOfTable) : [];
    return [...new Set([...tables.map(tagOfTable), ...rows])];
  }

  /** Whether cached reads of these tables may be served. */
  areServed(tables: readonly string[]): boolean {
    const { feed } = this.#scope;
    return feed === undefined || feed.isAlive() || !tables.some((table) => feed.covers(table));
  }

  /** The tag of the row that a read returns by its primary key. undefined: it depends on the table. */
  rowOf(table: string, point: PointRead | undefined, values: readonly unknown[]): string | undefined {
    const key = point && this.#scope.feed?.rowKey(table);
    return key && point && pointTag(table, key, point, values);
  }
}

/** An exact name wins over one that differs in schema, quotes or case. */
function settingsOf({ cache: { tables = {} } }: SessionScope, table: string): TableSettings {
  if (Object.hasOwn(tables, table)) return tables[table] ?? {};
  const bare = table.toLowerCase();
  const found = Object.entries(tables).find(([name]) => bareName(name) === bare);
  return found?.[1] ?? {};
}
