// What a database of MariaDB needs for a feed: the statements that set it up, and checks of what is there. Nothing here changes
// a database.
import { systemClock } from "../../core/clock.ts";
import { bareName } from "../tracking/table-tags.ts";
import type { MysqlConnection } from "./feed-options.ts";
import { type Cascade, leavesOut, readCascades } from "./mysql-catalogue.ts";
import { type MysqlRow, MysqlSqlLink } from "./mysql-link.ts";
import { finding, type SetUpFinding, TIMEOUT_MS, warning } from "./set-up.ts";

/** The statements for an administrator, who may change them. */
export function mysqlSetUpSql(database: string): readonly string[] {
  const user = "'xcache_feed'@'%'";
  return [
    "-- Where log_bin is off: needs a restart, with these in the section [mysqld] of the configuration.",
    "--   log_bin = binlog",
    "--   server_id = 1",
    "--   binlog_format = ROW",
    "-- Of connections that begin afterwards; sessions that are open keep theirs.",
    "SET GLOBAL binlog_format = ROW;",
    "SET GLOBAL binlog_row_image = FULL;",
    "-- A feed needs no history; replicas and backups may need more.",
    "SET GLOBAL expire_logs_days = 7;",
    "-- The user of the feed. REFERENCES shows it the tables, their keys and what cascades, and no data.",
    `CREATE USER ${user} IDENTIFIED BY '...';`,
    "-- MariaDB 10.5 and later call the second one BINLOG MONITOR, and accept both names.",
    `GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO ${user};`,
    `GRANT REFERENCES ON ${identifier(database)}.* TO ${user};`,
  ];
}

const VARIABLES = `
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'version_comment', 'read_only', 'log_bin', 'binlog_format',
  'binlog_row_image', 'expire_logs_days', 'binlog_expire_logs_seconds', 'max_connections')`;

/** Those that the user may see. */
const TABLES = `
SELECT t.TABLE_NAME AS name, EXISTS (SELECT 1 FROM information_schema.STATISTICS s
  WHERE s.TABLE_SCHEMA = t.TABLE_SCHEMA AND s.TABLE_NAME = t.TABLE_NAME AND s.INDEX_NAME = 'PRIMARY') AS keyed
FROM information_schema.TABLES t
WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')`;

type Variables = ReadonlyMap<string, string>;

/** Rejects with the error of the connection. */
export async function checkMysqlSetUp(
  connection: MysqlConnection,
  { tables }: { readonly tables: readonly string[] },
  timeoutMs = TIMEOUT_MS,
): Promise<readonly SetUpFinding[]> {
  const link = await MysqlSqlLink.open({ connection, clock: systemClock, timeoutMs });
  try {
    const [names] = await link.query("SELECT DATABASE() AS name, CURRENT_USER() AS user");
    const variables = valuesOf(await link.query(VARIABLES));
    const grants = (await link.query("SHOW GRANTS")).map((row) => String(Object.values(row)[0]));
    const threads = valuesOf(await link.query("SHOW GLOBAL STATUS LIKE 'Threads_connected'"));
    return [
      serverFinding(variables, (await link.snapshotPosition()) !== undefined),
      ...logFindings(variables),
      ...(names?.name === null
        ? [finding("database", false, { detail: "none is named", advice: "Name one in the address." })]
        : await databaseFindings(link, String(names?.name), tables)),
      privilegeFinding(String(names?.user), grants),
      retentionFinding(variables),
      connectionFinding(variables, threads),
    ];
  } finally {
    link.close();
  }
}

const valuesOf = (rows: readonly MysqlRow[]): Variables =>
  new Map(rows.map((row) => [String(row.Variable_name).toLowerCase(), String(row.Value)]));

function serverFinding(variables: Variables, saysPosition: boolean): SetUpFinding {
  const [version = "", comment = ""] = ["version", "version_comment"].map((name) => variables.get(name));
  const isMariadb = /mariadb/i.test(version);
  const product = isMariadb ? "MariaDB" : /percona/i.test(comment) ? "Percona Server" : "MySQL";
  const isReplica = variables.get("read_only") !== "OFF";
  const detail = `${product} ${version}${isReplica ? ", read-only" : ""}`;
  // Without a log no server says the position.
  if (!saysPosition && (variables.get("log_bin") === "ON" || product === "MySQL")) {
    return finding("server", false, {
      detail: `${detail}, which does not say which position of the binary log a snapshot sees`,
      advice: "Use MariaDB or Percona Server, which have binlog_snapshot_position.",
    });
  }
  return warning("server", !isReplica, { detail, advice: "Connect to the primary." });
}

function logFindings(variables: Variables): readonly SetUpFinding[] {
  const [log = "OFF", format = "", image = ""] = ["log_bin", "binlog_format", "binlog_row_image"].map(
    (name) => variables.get(name),
  );
  return [
    finding("log_bin", log === "ON", {
      detail: log,
      advice: "Start the server with log_bin and server_id.",
    }),
    finding("binlog_format", format === "ROW", {
      detail: format,
      advice: "SET GLOBAL binlog_format = ROW, and in the configuration.",
    }),
    warning("binlog_row_image", image.startsWith("FULL"), {
      detail: image,
      advice: "SET GLOBAL binlog_row_image = FULL: else an update drops all rows of its table.",
    }),
  ];
}

async function databaseFindings(
  link: MysqlSqlLink,
  database: string,
  tables: readonly string[],
): Promise<readonly SetUpFinding[]> {
  const found = await link.query(TABLES);
  const wanted = tables.map(bareName);
  const rowOf = (name: string): MysqlRow | undefined =>
    found.find((row) => String(row.name).toLowerCase() === name);
  const missing = wanted.filter((name) => rowOf(name) === undefined);
  const keyless = found.filter(({ name, keyed }) => {
    const isWanted = wanted.length === 0 || wanted.includes(String(name).toLowerCase());
    return isWanted && Number(keyed) !== 1;
  });
  const keylessNames = keyless.map(({ name }) => name).join(", ");
  return [
    await filterFinding(link, database),
    finding("tables", missing.length === 0 && found.length > 0, {
      detail:
        missing.length > 0
          ? `${database} has no table ${missing.join(", ")}, or the user has no privilege on it`
          : `${database} has ${found.length} ${found.length === 1 ? "table" : "tables"} that the user can see`,
      advice: `GRANT REFERENCES ON ${identifier(database)}.* to the user, which shows it definitions and no data.`,
    }),
    warning("primary_keys", keyless.length === 0, {
      detail: keyless.length === 0 ? "every table has one" : `none in ${keylessNames}`,
      advice: "Give them a primary key: else their rows are invalidated together.",
    }),
    cascadeFinding(database, await readCascades(link)),
  ];
}

async function filterFinding(link: MysqlSqlLink, database: string): Promise<SetUpFinding> {
  const name = "binlog_filters";
  try {
    const isLeftOut = await leavesOut(link, database);
    const detail = isLeftOut ? `the log leaves out ${database}` : `the log contains ${database}`;
    return finding(name, !isLeftOut, { detail, advice: "Change binlog_do_db or binlog_ignore_db." });
  } catch (error) {
    const advice = "Give the user the privilege to see the state of the log, then check again.";
    return finding(name, false, { detail: `unknown: ${(error as Error).message}`, advice });
  }
}

function cascadeFinding(database: string, cascades: readonly Cascade[]): SetUpFinding {
  const isHere = ({ child }: Cascade): boolean => child.startsWith(`${database.toLowerCase()}.`);
  const own = cascades.filter(isHere);
  const short = (table: string): string =>
    table.startsWith(`${database.toLowerCase()}.`) ? table.slice(database.length + 1) : table;
  const named = own.map(({ parent, child }) => `${short(parent)} to ${short(child)}`).join(", ");
  const hidden = own.filter(({ isHidden }) => isHidden).map(({ parent }) => short(parent));
  const notes = [
    ...(own.some(({ isGuess }) => isGuess)
      ? ["the user cannot see their rules, so every foreign key counts as one that cascades"]
      : []),
    ...(hidden.length > 0
      ? [`the user cannot see ${hidden.join(", ")}, so every change drops what is below`]
      : []),
  ];
  const detail =
    own.length === 0 ? "none" : [`not in the log, so followed by the feed: ${named}`, ...notes].join("; ");
  return warning("cascades", notes.length === 0, {
    detail,
    advice: `GRANT REFERENCES ON ${identifier(database)}.* to the user.`,
  });
}

/** What a user may do on the whole server; the lines also hold the hash of the password. */
function globalPrivileges(grants: readonly string[]): ReadonlySet<string> {
  const lists = grants.flatMap((line) => /^GRANT (.+?) ON \*\.\* TO /.exec(line)?.[1] ?? []);
  return new Set(lists.flatMap((list) => list.split(", ")));
}

function privilegeFinding(user: string, grants: readonly string[]): SetUpFinding {
  const has = globalPrivileges(grants);
  const isOneOf = (...names: string[]): boolean => ["ALL PRIVILEGES", ...names].some((name) => has.has(name));
  const missing = [
    ...(isOneOf("REPLICATION SLAVE") ? [] : ["REPLICATION SLAVE"]),
    ...(isOneOf("BINLOG MONITOR", "REPLICATION CLIENT", "SUPER") ? [] : ["BINLOG MONITOR"]),
  ];
  return finding("privileges", missing.length === 0, {
    detail: `user ${user} ${missing.length === 0 ? "may read the log" : `lacks ${missing.join(" and ")}`}`,
    advice: "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* to the user.",
  });
}

const DAY = 86_400;

function retentionFinding(variables: Variables): SetUpFinding {
  const seconds = Number(variables.get("binlog_expire_logs_seconds") ?? 0);
  const days = seconds > 0 ? seconds / DAY : Number(variables.get("expire_logs_days") ?? 0);
  return warning("retention", days > 0, {
    detail: days > 0 ? `logs are kept for ${Number(days.toFixed(2))} days` : "logs are kept for ever",
    advice: "SET GLOBAL expire_logs_days: a feed itself needs no history.",
  });
}

/** A leader needs two connections; this check used one. */
function connectionFinding(variables: Variables, status: Variables): SetUpFinding {
  const most = Number(variables.get("max_connections"));
  const free = most - Number(status.get("threads_connected")) + 1;
  return finding("connections", free >= 2, {
    detail: `${free} of ${most} are free`,
    advice: "Raise max_connections: a leader needs two, every other process one.",
  });
}

/** Quoted only where it must be. */
const identifier = (name: string): string =>
  /^[a-z_][a-z0-9_]*$/i.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
