// Questions about PostgreSQL's catalogue: what a read depends on, and what a write touches. No permission is needed for them.
import type { Trust } from "../sql/settled-statement.ts";

/** Fields and records of a text that the database returns. */
const FIELD = "\u001e";
export const RECORD = "\u001f";
/** The same in SQL, whatever the session's settings. Functions are named with their schema: the search path may hide them. */
const FIELDS = "E'\\x1e'";
export const RECORDS = "E'\\x1f'";

const FIRST_OWN_OID = 16_384;
const PG_PROC = 1255;
const PG_CLASS = 1259;
const PG_REWRITE = 2618;

/** What `trustOf` is concluded from, as fields of a record. */
const FACTS = `p.provolatile, p.prokind, CASE WHEN p.oid < ${FIRST_OWN_OID} THEN 'database' WHEN (SELECT true FROM pg_catalog.pg_depend e
    WHERE e.classid = ${PG_PROC} AND e.objid = p.oid AND e.deptype = 'e' LIMIT 1) THEN 'extension' ELSE 'own' END`;

/** Changes when a function is created anywhere in the database. */
const STAMP = "(SELECT oid FROM pg_catalog.pg_proc ORDER BY oid DESC LIMIT 1)::text AS stamp";

/** Every function of the names in a parameter, in any schema: whether it is visible would take longer to tell. */
export const functionsNamed = (parameter: string): string => `coalesce((
    SELECT pg_catalog.string_agg(pg_catalog.concat_ws(${FIELDS}, p.proname, ${FACTS}), ${RECORDS}) FROM pg_catalog.pg_proc p
    WHERE p.proname = ANY (pg_catalog.string_to_array(${parameter}, ${RECORDS}))), '') AS functions,
  ${STAMP}`;

export const NO_FUNCTIONS = `'' AS functions, ${STAMP}`;

const NAMED = `relname = ANY (pg_catalog.string_to_array($1, ${RECORDS})) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')`;

/** `plain`: a table on its own. `deep`: it is part of others or made of them. `no`: its rows are not the same for all. */
export const TABLES = `coalesce((SELECT pg_catalog.string_agg(pg_catalog.concat_ws(${FIELDS}, relname,
    CASE WHEN relkind IN ('f', 'S') OR relrowsecurity THEN 'no' WHEN relkind = 'v' OR relhassubclass OR relispartition
      OR EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid) THEN 'deep' ELSE 'plain' END), ${RECORDS})
    FROM pg_catalog.pg_class c WHERE ${NAMED}), '') AS tables`;

/** Parts of a stored query that make its result depend on more than rows. No backslash: its meaning depends on a setting. */
const CHANGING =
  "[{](SQLVALUEFUNCTION|NEXTVALUEEXPR|TABLESAMPLECLAUSE|ROWMARKCLAUSE)|:resulttype (1082|1083|1114|1184|1266) :resultcollid [0-9]+ :coerceformat";

/**
 * Whatever the relations of the names in `$1` read. Roles: `own`: its rows are read; `part`: a partition of one whose rows are;
 * `up`: writes to it may change those rows. Built-in functions are pinned, so that pg_depend does not list them: their ids
 * are in the text of the query.
 */
export const DEEP_TABLES = `coalesce((WITH RECURSIVE part AS (
    SELECT relname AS name, oid, relname, relkind, relrowsecurity, 'own' AS role FROM pg_catalog.pg_class WHERE ${NAMED}
    UNION
    SELECT part.name, c.oid, c.relname, c.relkind, c.relrowsecurity, next.role FROM part CROSS JOIN LATERAL (
      SELECT d.refobjid AS oid, 'own' AS role FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_depend d ON d.classid = ${PG_REWRITE} AND d.objid = r.oid AND d.refclassid = ${PG_CLASS}
        WHERE part.relkind = 'v' AND r.ev_class = part.oid
      UNION ALL SELECT inhparent, 'up' FROM pg_catalog.pg_inherits WHERE inhrelid = part.oid
      UNION ALL SELECT inhrelid, 'part' FROM pg_catalog.pg_inherits WHERE part.role <> 'up' AND inhparent = part.oid
    ) AS next JOIN pg_catalog.pg_class c ON c.oid = next.oid
  ), query AS (
    SELECT DISTINCT part.name, r.ev_action::text AS text FROM part JOIN pg_catalog.pg_rewrite r ON r.ev_class = part.oid
    WHERE part.relkind = 'v'
  ) SELECT pg_catalog.string_agg(record, ${RECORDS}) FROM (
    SELECT pg_catalog.concat_ws(${FIELDS}, 'relation', name, relname, relkind, relrowsecurity, role, oid) AS record FROM part
    UNION ALL SELECT pg_catalog.concat_ws(${FIELDS}, 'function', query.name, p.proname, p.oid, ${FACTS}) FROM query
      CROSS JOIN LATERAL pg_catalog.regexp_matches(query.text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([0-9]+)', 'g') AS found
      JOIN pg_catalog.pg_proc p ON p.oid = found[1]::oid WHERE p.oid >= ${FIRST_OWN_OID} OR p.provolatile <> 'i'
    UNION ALL SELECT pg_catalog.concat_ws(${FIELDS}, 'changing', query.name) FROM query WHERE query.text ~ '${CHANGING}'
  ) AS records), '') AS tables`;

/**
 * Changes whenever an answer may change that was concluded from relations with these names and ids, their triggers and rules, and
 * functions with these ids.
 */
function stampOf(isNamed: string, ids: string, functions: string): string {
  const isOneOf = (column: string, list: string): string =>
    `${column} = ANY (pg_catalog.string_to_array(${list}, ${RECORDS})::oid[])`;
  return `(SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(part, ',' ORDER BY part), '')) FROM (
    SELECT pg_catalog.concat('n', oid) AS part FROM pg_catalog.pg_class WHERE ${isNamed}
    UNION ALL SELECT pg_catalog.concat('c', oid, relkind, relrowsecurity) FROM pg_catalog.pg_class WHERE ${isOneOf("oid", ids)}
    UNION ALL SELECT pg_catalog.concat('t', oid, ' ', xmin) FROM pg_catalog.pg_trigger WHERE ${isOneOf("tgrelid", ids)}
    UNION ALL SELECT pg_catalog.concat('r', oid, ' ', xmin) FROM pg_catalog.pg_rewrite WHERE ${isOneOf("ev_class", ids)}
    UNION ALL SELECT pg_catalog.concat('i', inhrelid, ' ', inhparent) FROM pg_catalog.pg_inherits WHERE ${isOneOf("inhrelid", ids)}
    UNION ALL SELECT pg_catalog.concat('i', inhrelid, ' ', inhparent) FROM pg_catalog.pg_inherits WHERE ${isOneOf("inhparent", ids)}
    UNION ALL SELECT pg_catalog.concat('f', oid, ' ', xmin) FROM pg_catalog.pg_proc WHERE ${isOneOf("oid", functions)}
  ) AS parts)`;
}

/** The same question in a fraction of the time: has the answer about what relations read changed? */
export const TABLES_STAMP = `${stampOf(NAMED, "$2", "$3")} AS tables`;

/** ON DELETE and ON UPDATE with CASCADE, SET NULL and SET DEFAULT are triggers that call these functions. */
const CASCADES = "(1646, 1647, 1650, 1651, 1652, 1653)";

const WRITABLE = `relname = ANY (pg_catalog.string_to_array($1, ${RECORDS})) AND relkind IN ('r', 'p', 'v', 'f', 'm')`;

/** `plain`: a write to it touches nothing else. */
export const TOUCHED = `SELECT coalesce((SELECT pg_catalog.string_agg(pg_catalog.concat_ws(${FIELDS}, relname, CASE WHEN relkind IN ('r', 'm')
      AND NOT (relispartition OR relhasrules OR relhassubclass)
      AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits WHERE inhrelid = c.oid)
      AND NOT (relhastriggers AND EXISTS (SELECT 1 FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid
        AND (NOT tgisinternal OR tgfoid IN ${CASCADES}))) THEN 'plain' ELSE 'deep' END), ${RECORDS})
    FROM pg_catalog.pg_class c WHERE ${WRITABLE}), '') AS tables`;

/**
 * Whatever a write to the tables in `$1` may touch, and the functions of their triggers. A table's partitions are followed but
 * not listed: reads of a partition carry the tags of the tables that it is part of.
 */
export const DEEP_TOUCHED = `SELECT coalesce((WITH RECURSIVE touched AS (
    SELECT oid, relname, 'own' AS role FROM pg_catalog.pg_class WHERE ${WRITABLE}
    UNION
    SELECT c.oid, c.relname, next.role FROM touched CROSS JOIN LATERAL (
      SELECT inhparent AS oid, 'up' AS role FROM pg_catalog.pg_inherits WHERE inhrelid = touched.oid
      UNION ALL SELECT inhrelid, 'part' FROM pg_catalog.pg_inherits
        WHERE touched.role <> 'up' AND inhparent = touched.oid
      UNION ALL SELECT tgconstrrelid, 'own' FROM pg_catalog.pg_trigger
        WHERE touched.role <> 'up' AND tgrelid = touched.oid AND tgfoid IN ${CASCADES}
      UNION ALL SELECT d.refobjid, 'own' FROM pg_catalog.pg_rewrite r
        JOIN pg_catalog.pg_depend d ON d.classid = ${PG_REWRITE} AND d.objid = r.oid AND d.refclassid = ${PG_CLASS}
        WHERE touched.role <> 'up' AND r.ev_class = touched.oid
    ) AS next JOIN pg_catalog.pg_class c ON c.oid = next.oid
  ) SELECT pg_catalog.string_agg(record, ${RECORDS}) FROM (
    SELECT DISTINCT pg_catalog.concat_ws(${FIELDS}, 'relation', relname, oid, role) AS record FROM touched
    UNION ALL SELECT DISTINCT pg_catalog.concat_ws(${FIELDS}, 'trigger', g.tgfoid, p.xmin) FROM touched t
      JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.oid AND NOT g.tgisinternal AND g.tgenabled <> 'D'
      JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid WHERE t.role <> 'up'
    UNION ALL SELECT DISTINCT pg_catalog.concat_ws(${FIELDS}, 'function', p.proname, ${FACTS}) FROM touched t
      JOIN pg_catalog.pg_rewrite r ON r.ev_class = t.oid AND r.ev_type <> '1'
      JOIN pg_catalog.pg_depend d ON d.classid = ${PG_REWRITE} AND d.objid = r.oid AND d.refclassid = ${PG_PROC}
      JOIN pg_catalog.pg_proc p ON p.oid = d.refobjid WHERE t.role <> 'up'
  ) AS records), '') AS tables`;

/** The same question in a fraction of the time: has the answer about touched tables changed? */
export const TOUCHED_STAMP = `SELECT ${stampOf(WRITABLE, "$2", "$3")} AS tables`;

/** The bodies of the functions whose ids are in `$1`. */
export const BODIES = `SELECT coalesce((SELECT pg_catalog.string_agg(pg_catalog.concat_ws(${FIELDS}, p.oid, l.lanname, p.prosrc), ${RECORDS})
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE p.oid = ANY (pg_catalog.string_to_array($1, ${RECORDS})::oid[])), '') AS tables`;

/** The records of a text, each with its fields. */
export function recordsIn(text: string): readonly (readonly string[])[] {
  return text === "" ? [] : text.split(RECORD).map((record) => record.split(FIELD));
}

/** What the question about functions returned, for each name asked. */
export function trustsIn(text: string, names: readonly string[]): ReadonlyMap<string, Trust> {
  const found = new Map<string, (readonly string[])[]>(names.map((name) => [name, []]));
  for (const [name = "", ...facts] of recordsIn(text)) found.get(name)?.push(facts);
  return new Map(names.map((name) => [name, trustOf(found.get(name) ?? [])]));
}

/** Of functions that have the same name; for each its `FACTS`. */
export function trustOf(functions: readonly (readonly string[])[]): Trust {
  if (functions.length === 0) return "absent";
  const trusts = functions.map(trustOfOne);
  return LEAST_FIRST.find((trust) => trusts.includes(trust)) ?? "own";
}

const LEAST_FIRST: readonly Trust[] = ["own", "built-in", "stable", "immutable"];

function trustOfOne([volatility, kind, origin]: readonly string[]): Trust {
  // An aggregate is always marked as immutable, whatever its functions are.
  if (volatility === "i" && (origin === "database" || kind !== "a")) return "immutable";
  if (origin !== "database" && origin !== "extension") return "own";
  return volatility === "i" || volatility === "s" ? "stable" : "built-in";
}
