// What the publication covers: its tables, the tables these are part of, and their primary keys.
import type { KeyColumn, RowKey } from "../../core/db-session.ts";
import { ConfigError } from "../../core/errors.ts";
import { bareName } from "../tracking/table-tags.ts";
import type { FeedCatalogue } from "./leader.ts";
import type { Row } from "./library.ts";
import type { SqlLink } from "./link.ts";

const IN_PUBLICATION = `
  SELECT c.oid, to_jsonb(t) ->> 'rowfilter' AS filter
  FROM pg_publication_tables t
  JOIN pg_namespace n ON n.nspname = t.schemaname
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
  WHERE t.pubname = $1`;

/** A trigger for each statement of every kind; pg_trigger.h has the bits. */
const WITH_TRIGGER = `
  SELECT t.tgrelid AS oid, NULL AS filter FROM pg_trigger t
  WHERE t.tgname = $1 AND t.tgenabled IN ('O', 'A') AND t.tgtype & 1 = 0 AND t.tgtype & 60 = 60`;

/**
 * Every relation, with its kind, its parents (partitioned or inherited from), its primary key and a digest of its
 * columns, as far as it is published or related to one that is. Text comparison is exact under a deterministic collation only.
 */
const relatedTo = (published: string): string => `
WITH RECURSIVE published AS (${published}), above AS (
  SELECT oid AS member, oid FROM published
  UNION SELECT above.member, i.inhparent FROM above JOIN pg_inherits i ON i.inhrelid = above.oid
), below AS (
  SELECT oid AS member, oid FROM published
  UNION SELECT below.member, i.inhrelid FROM below JOIN pg_inherits i ON i.inhparent = below.oid
), related AS (SELECT * FROM above UNION SELECT * FROM below)
SELECT r.oid::text AS oid, c.relname::text AS name, c.relkind::text AS kind,
  array_to_string(array_agg(DISTINCT r.member::text), ',') AS members,
  (p.oid IS NOT NULL)::text AS published, coalesce(p.filter, '') AS filter,
  (SELECT count(*) FROM pg_class o WHERE lower(o.relname) = lower(c.relname)
    AND o.relkind IN ('r', 'p', 'v', 'm', 'f'))::text AS namesakes,
  coalesce((SELECT string_agg(i.inhrelid::text, ',') FROM pg_inherits i WHERE i.inhparent = r.oid), '') AS children,
  coalesce((SELECT json_agg(json_build_object('name', a.attname, 'type', a.atttypid::int,
      'exact', coalesce(l.collisdeterministic, true)) ORDER BY k.position)
    FROM pg_index x, unnest(x.indkey) WITH ORDINALITY AS k (attnum, position), pg_attribute a
    LEFT JOIN pg_collation l ON l.oid = a.attcollation
    WHERE x.indrelid = r.oid AND x.indisprimary AND k.position <= x.indnkeyatts
      AND a.attrelid = r.oid AND a.attnum = k.attnum)::text, '[]') AS key,
  (SELECT md5(string_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attisdropped), ',' ORDER BY a.attnum))
    FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0) AS columns
FROM related r JOIN pg_class c ON c.oid = r.oid LEFT JOIN published p ON p.oid = r.oid
GROUP BY r.oid, c.relname, c.relkind, p.oid, p.filter
ORDER BY r.oid`;

const PUBLICATION = `
SELECT (pubinsert AND pubupdate AND pubdelete AND pubtruncate)::text AS everything
FROM pg_publication WHERE pubname = $1`;

const SERVER = `
SELECT current_setting('wal_level') AS wal_level, current_setting('server_version_num') AS version,
  current_setting('wal_block_size') AS page, pg_is_in_recovery()::text AS recovering`;

/** What a feed needs to know of its server. Throws ConfigError if it cannot be used. */
export interface ServerFacts {
  readonly version: number;
  readonly pageBytes: bigint;
}

export async function readServer(link: SqlLink): Promise<ServerFacts> {
  const [row] = await link.query(SERVER);
  const version = Number(row?.version);
  if (version < 130_000) throw problem(`PostgreSQL 13 or later is needed, this is ${row?.version}`);
  if (row?.recovering === "true") throw problem("this server is a replica: connect the feed to the primary");
  if (row?.wal_level !== "logical") {
    throw problem(
      `wal_level must be logical, it is ${row?.wal_level}`,
      "ALTER SYSTEM SET wal_level = logical, then restart.",
    );
  }
  return { version, pageBytes: BigInt(String(row.page)) };
}

function problem(message: string, hint = "Run `xcache db feed --check` against this database."): ConfigError {
  return new ConfigError("FEATURE_DISABLED", `feed: ${message}`, { hint });
}

/** A table that a change of a published relation is a change of: itself, and those it is a part of. */
export interface ChangedTable {
  readonly name: string;
  /** Its primary key, in order. Empty: it has none. */
  readonly key: readonly string[];
}

export class Catalogue implements FeedCatalogue {
  readonly version: string;
  /** By relation. */
  readonly changed: ReadonlyMap<number, readonly ChangedTable[]>;
  readonly keys: ReadonlyMap<string, RowKey>;
  readonly names: ReadonlySet<string>;

  private constructor(rows: readonly Row[]) {
    this.version = JSON.stringify(rows);
    const relations = rows.map(relationOf);
    const changed = new Map<number, ChangedTable[]>();
    for (const { members, name, key } of relations) {
      for (const member of members) {
        const tables = changed.get(member) ?? [];
        changed.set(member, [...tables, { name, key: key.map((column) => column.name) }]);
      }
    }
    this.changed = changed;
    this.names = new Set(relations.map(({ name }) => name.toLowerCase()));
    this.keys = new Map(
      relations.flatMap(({ name, namesakes, key }) => {
        const columns = key.flatMap(({ name: column, type, exact }) => keyColumn(column, type, exact) ?? []);
        // Under a name of several tables nobody knows which one a statement means.
        const isCertain = namesakes === 1 && columns.length > 0 && columns.length === key.length;
        return isCertain ? [[name.toLowerCase(), columns] as const] : [];
      }),
    );
  }

  /** Throws ConfigError unless the publication tells of every change of `tables`. */
  static async read(link: SqlLink, publication: string, tables: readonly string[]): Promise<Catalogue> {
    const [found] = await link.query(PUBLICATION, [publication]);
    const shown = JSON.stringify(publication);
    if (found === undefined) throw problem(`there is no publication ${shown}`, SQL_HINT);
    if (found.everything !== "true") {
      throw problem(`publication ${shown} must publish insert, update, delete and truncate`, SQL_HINT);
    }
    const rows = await link.query(relatedTo(IN_PUBLICATION), [publication]);
    const missing = tables.filter((table) => !isCovered(rows, table, true));
    if (missing.length > 0) {
      throw problem(`publication ${shown} does not tell of every change of ${missing.join(", ")}`, SQL_HINT);
    }
    return new Catalogue(rows);
  }

  /** Throws ConfigError unless `tables` and all their parts have the trigger. */
  static async ofTriggers(link: SqlLink, trigger: string, tables: readonly string[]): Promise<Catalogue> {
    const rows = await link.query(relatedTo(WITH_TRIGGER), [trigger]);
    const missing = tables.filter((table) => !isCovered(rows, table, false));
    if (missing.length > 0) {
      throw problem(
        `there is no trigger ${JSON.stringify(trigger)} for every change of ${missing.join(", ")}`,
        SQL_HINT,
      );
    }
    return new Catalogue(rows);
  }
}

const SQL_HINT = "`xcache db feed --sql` prints the statements that set it up.";

interface RelatedRelation {
  readonly oid: number;
  readonly name: string;
  readonly kind: string;
  /** The published relations whose changes are changes of this one. */
  readonly members: readonly number[];
  readonly isPublished: boolean;
  readonly isFiltered: boolean;
  readonly namesakes: number;
  readonly children: readonly number[];
  readonly key: readonly { readonly name: string; readonly type: number; readonly exact: boolean }[];
}

function relationOf(row: Row): RelatedRelation {
  const list = (column: string): number[] => String(row[column]).split(",").filter(Boolean).map(Number);
  return {
    oid: Number(row.oid),
    name: String(row.name),
    kind: String(row.kind),
    members: list("members"),
    isPublished: row.published === "true",
    isFiltered: row.filter !== "",
    namesakes: Number(row.namesakes),
    children: list("children"),
    key: JSON.parse(String(row.key)) as RelatedRelation["key"],
  };
}

/**
 * Whether the changes of every part of the tables of that name are published, without a row filter. `tellsOfParts`: those of a
 * partitioned table include those of its partitions.
 */
function isCovered(rows: readonly Row[], table: string, tellsOfParts: boolean): boolean {
  const [relations, name] = [rows.map(relationOf), bareName(table)];
  const byOid = new Map(relations.map((relation) => [relation.oid, relation]));
  const isWhole = (oid: number, isWithin: boolean): boolean => {
    const relation = byOid.get(oid);
    if (relation === undefined || relation.isFiltered) return false;
    // A partitioned table that is published for its parts needs nothing more of them.
    const isReported = isWithin || relation.isPublished;
    const isEnough = isReported || (tellsOfParts && relation.kind === "p");
    const isOfParts = tellsOfParts && relation.kind === "p" && isReported;
    return isEnough && relation.children.every((child) => isWhole(child, isOfParts));
  };
  const named = relations.filter((relation) => relation.name.toLowerCase() === name);
  return (
    named.length > 0 &&
    named.every(({ oid, children, kind }) => {
      const isEmptyRoot = kind === "p" && children.length === 0;
      return isEmptyRoot || isWhole(oid, tellsOfParts && isPartOfPublished(oid, relations));
    })
  );
}

/** A partition whose changes come under the name of the table it is part of. */
function isPartOfPublished(oid: number, relations: readonly RelatedRelation[]): boolean {
  const parents = relations.filter(({ kind, children }) => kind === "p" && children.includes(oid));
  return parents.some((parent) => parent.isPublished || isPartOfPublished(parent.oid, relations));
}

const KINDS: Readonly<Record<number, KeyColumn["kind"]>> = {
  // int8, int2, int4, text, varchar, uuid
  20: "integer",
  21: "integer",
  23: "integer",
  25: "text",
  1043: "text",
  2950: "uuid",
};

function keyColumn(name: string, type: number, isExact: boolean): KeyColumn | undefined {
  const kind = KINDS[type];
  return kind === undefined || !isExact ? undefined : { name, kind };
}
