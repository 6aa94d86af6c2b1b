// What a database of PostgreSQL needs for a feed: the statements that set it up, and checks of what is there. Nothing here changes a database.
import { systemClock } from "../../core/clock.ts";
import { bareName } from "../tracking/table-tags.ts";
import type { PostgresConnection } from "./feed-options.ts";
import { clientsOf, type Row } from "./library.ts";
import { SqlLink } from "./link.ts";

export interface SetUp {
  readonly publication: string;
  readonly tables: readonly string[];
  /** For LISTEN and NOTIFY instead of logical replication. */
  readonly notify: boolean;
}

/** The statements for an administrator, who may change them. */
export function setUpSql({ publication, tables, notify }: SetUp): readonly string[] {
  const [name, helper, ddl] = ["", "_notify", "_ddl"].map((end) => identifier(`${publication}${end}`));
  const tableNames = tables.map(tableName);
  if (notify) {
    return [
      `CREATE OR REPLACE FUNCTION ${helper}() RETURNS trigger LANGUAGE plpgsql AS $$`,
      `BEGIN PERFORM pg_notify(${literal(publication)}, TG_RELID::text); RETURN NULL; END $$;`,
      "-- One trigger per table; a partitioned table and each of its partitions need one.",
      ...tableNames.map(
        (table) =>
          `CREATE TRIGGER ${name} AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION ${helper}();`,
      ),
    ];
  }
  return [
    "-- Needs a restart. Managed services have a setting for it, such as rds.logical_replication.",
    "ALTER SYSTEM SET wal_level = logical;",
    "-- The role of the feed; it needs no privilege on the tables.",
    "CREATE ROLE xcache_feed LOGIN REPLICATION PASSWORD '...';",
    "-- Only tables with a primary key: others would refuse UPDATE and DELETE.",
    `CREATE PUBLICATION ${name} FOR TABLE ${tableNames.join(", ")};`,
    "-- For a durable slot: how much a feed that is gone may retain.",
    "ALTER SYSTEM SET max_slot_wal_keep_size = '4GB';",
    "-- Optional: changes of the schema are noticed at once.",
    `CREATE OR REPLACE FUNCTION ${ddl}() RETURNS event_trigger LANGUAGE plpgsql AS $$`,
    "BEGIN PERFORM pg_logical_emit_message(true, 'xcache', 'ddl'); END $$;",
    `CREATE EVENT TRIGGER ${ddl} ON ddl_command_end EXECUTE FUNCTION ${ddl}();`,
  ];
}

export interface SetUpFinding {
  readonly name: string;
  readonly state: "ok" | "warning" | "problem";
  readonly detail: string;
  /** What to do; null if nothing is needed. */
  readonly advice: string | null;
}

const QUERY = `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
  pg_is_in_recovery() AS recovering, current_setting('wal_level') AS wal_level, current_user::text AS role,
  (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)
    OR EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(current_user, oid, 'member')) AS replicates,
  (SELECT puballtables FROM pg_publication WHERE pubname = $1) AS all_tables,
  (SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate FROM pg_publication WHERE pubname = $1) AS everything,
  current_setting('max_replication_slots')::int - (SELECT count(*)::int FROM pg_replication_slots) AS free_slots,
  current_setting('max_wal_senders')::int - (SELECT count(*)::int FROM pg_stat_replication) AS free_senders,
  current_setting('max_slot_wal_keep_size') AS keeps,
  current_setting('synchronous_standby_names') AS standbys,
  EXISTS (SELECT 1 FROM pg_event_trigger WHERE evtevent = 'ddl_command_end' AND evtname = $1 || '_ddl') AS tells_of_ddl,
  (SELECT coalesce(string_agg(format('%s (%s)', slot_name,
      pg_size_pretty(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, restart_lsn))), ', '), '')
    FROM pg_replication_slots WHERE NOT active) AS idle_slots`;

/** Published tables, whether UPDATE works on them, and whether some of their rows are left out. */
const TABLES = `
SELECT c.relname::text AS name,
  c.relreplident = 'f' OR (c.relreplident = 'i')
    OR (c.relreplident = 'd' AND EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)) AS identified,
  to_jsonb(t) ->> 'rowfilter' IS NOT NULL AS filtered
FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
WHERE t.pubname = $1`;

export const TIMEOUT_MS = 10_000;

/** Rejects with the error of the connection. */
export async function checkSetUp(
  connection: PostgresConnection,
  setUp: Pick<SetUp, "publication" | "tables">,
  timeoutMs = TIMEOUT_MS,
): Promise<readonly SetUpFinding[]> {
  const link = await SqlLink.open({ open: clientsOf(connection), clock: systemClock, timeoutMs });
  try {
    const [facts = {}] = await link.query(QUERY, [setUp.publication]);
    const published = await link.query(TABLES, [setUp.publication]);
    return [
      ...serverFindings(facts),
      ...publicationFindings(setUp, facts, published),
      ...slotFindings(facts),
    ];
  } finally {
    link.close();
  }
}

function serverFindings(facts: Row): readonly SetUpFinding[] {
  const { version, number, recovering, wal_level: level, role, replicates } = facts;
  return [
    finding("server", Number(number) >= 130_000 && recovering !== true, {
      detail: `PostgreSQL ${version}${recovering === true ? ", a replica" : ""}`,
      advice: "Connect to the primary, PostgreSQL 13 or later.",
    }),
    finding("wal_level", level === "logical", {
      detail: String(level),
      advice: "ALTER SYSTEM SET wal_level = logical, then restart the server.",
    }),
    finding("privileges", replicates === true, {
      detail: `role ${role} ${replicates === true ? "may replicate" : "may not replicate"}`,
      advice: `ALTER ROLE ${identifier(String(role))} REPLICATION.`,
    }),
  ];
}

function publicationFindings(
  { publication, tables }: Pick<SetUp, "publication" | "tables">,
  { everything, all_tables: isAll }: Row,
  published: readonly Row[],
): readonly SetUpFinding[] {
  if (everything === null || everything === undefined) {
    const advice = "`xcache db feed --sql` prints the statement that creates it.";
    return [finding("publication", false, { detail: `there is no publication ${publication}`, advice })];
  }
  const names = published.map(({ name }) => String(name).toLowerCase());
  const missing = tables.filter((table) => !names.includes(bareName(table)));
  const named = (flag: string, value: boolean): string =>
    published
      .filter((row) => row[flag] === value)
      .map(({ name }) => name)
      .join(", ");
  const [unidentified, filtered] = [named("identified", false), named("filtered", true)];
  const problems = [
    ...(everything === true ? [] : ["does not publish insert, update, delete and truncate"]),
    ...(missing.length === 0 ? [] : [`lacks ${missing.join(", ")}`]),
    ...(filtered === "" ? [] : [`leaves out rows of ${filtered}`]),
  ];
  return [
    finding("publication", problems.length === 0, {
      detail: `${publication} ${problems.length === 0 ? `has ${published.length} tables` : problems.join(", ")}`,
      advice: "ALTER PUBLICATION so that every change of the cached tables is published.",
    }),
    finding("replica_identity", unidentified === "", {
      detail:
        unidentified === "" ? "every published table has one" : `UPDATE and DELETE fail on ${unidentified}`,
      advice: `Give them a primary key, or ${isAll === true ? "publish single tables instead of all" : "take them out of the publication"}.`,
    }),
  ];
}

function slotFindings(facts: Row): readonly SetUpFinding[] {
  const {
    free_slots: slots,
    free_senders: senders,
    keeps,
    idle_slots: idle,
    standbys,
    tells_of_ddl: ddl,
  } = facts;
  return [
    finding("free_slots", Number(slots) > 0 && Number(senders) > 0, {
      detail: `${slots} replication slots and ${senders} WAL senders are free`,
      advice: "Raise max_replication_slots and max_wal_senders, then restart the server.",
    }),
    warning("retention", keeps !== "-1" && idle === "", {
      detail: `max_slot_wal_keep_size is ${keeps}${idle === "" ? "" : `; slots that nobody reads retain WAL: ${idle}`}`,
      advice: "Set max_slot_wal_keep_size before you use a durable slot; drop slots that nobody needs.",
    }),
    warning("synchronous_standby", !/\*|xcache feed/.test(String(standbys)), {
      detail: standbys === "" ? "none" : String(standbys),
      advice:
        "Name the standbys: a feed with a durable slot that counts as one would make commits wait for ever.",
    }),
    warning("schema_changes", ddl === true, {
      detail:
        ddl === true
          ? "noticed at once, by an event trigger"
          : "noticed by polling, within 2.5 times silentFor",
      advice: "`xcache db feed --sql` prints an event trigger that reports them at once.",
    }),
  ];
}

interface Text {
  readonly detail: string;
  readonly advice: string;
}

export const finding = (name: string, isOk: boolean, { detail, advice }: Text): SetUpFinding =>
  isOk ? { name, state: "ok", detail, advice: null } : { name, state: "problem", detail, advice };

export const warning = (name: string, isOk: boolean, text: Text): SetUpFinding => {
  const found = finding(name, isOk, text);
  return found.state === "ok" ? found : { ...found, state: "warning" };
};

/** Quoted only where it must be. */
const identifier = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

/** `schema.table`, each part as it is written; quoted parts stay quoted. */
const tableName = (name: string): string =>
  name.includes('"') ? name : name.split(".").map(identifier).join(".");

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
