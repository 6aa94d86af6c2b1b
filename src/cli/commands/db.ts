// xcache db feed: checks a database for a feed of its changes, or prints the statements that set it up.

import { MissingPeerError } from "../../core/errors.ts";
import { suggestName } from "../../core/suggest-name.ts";
import { checkMysqlSetUp, mysqlSetUpSql } from "../../db/feed/mysql-set-up.ts";
import { checkSetUp, type SetUpFinding, setUpSql } from "../../db/feed/set-up.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { findingLines } from "../doctor/checks.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";

const TOPICS = ["feed"];

export async function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const [topic = ""] = args;
  if (!TOPICS.includes(topic)) {
    throw new CommandError(`unknown topic ${JSON.stringify(topic)}`, `${suggestName(topic, TOPICS)}.`);
  }
  const flags = options as FeedFlags;
  const { check, sql } = flags;
  if (check === sql) throw new CommandError("pass either --check or --sql", "See `xcache db --help`.");
  const connection = flags.connection ?? context.env.DATABASE_URL ?? "";
  const database = databaseOf(connection, flags);
  if (sql !== true) {
    if (connection !== "") return checkDatabase(context, database.check);
    throw new CommandError(
      "--check needs the database",
      `Pass --connection ${EXAMPLE}, or set DATABASE_URL.`,
    );
  }
  const statements = database.statements();
  if (context.out.json) await context.out.jsonLine({ sql: statements.join("\n") });
  else await context.out.lines(statements);
  return EXIT.ok;
}

interface FeedFlags {
  readonly check?: true;
  readonly sql?: true;
  readonly connection?: string;
  readonly publication?: string;
  readonly table?: readonly string[];
  readonly notify?: boolean;
}

const EXAMPLE = "postgres://user@host/database or mysql://user@host/database";

/** What differs between databases. */
interface FeedDatabase {
  statements(): readonly string[];
  check(timeoutMs: number | undefined): Promise<readonly SetUpFinding[]>;
}

/** By the protocol of the address; PostgreSQL if it has none. Throws CommandError. */
function databaseOf(connection: string, flags: FeedFlags): FeedDatabase {
  const protocol = /^([a-z][a-z0-9+.-]*):\/\//i.exec(connection)?.[1]?.toLowerCase();
  switch (protocol) {
    case undefined:
    case "postgres":
    case "postgresql":
      return postgresDatabase(connection, flags);
    case "mysql":
    case "mariadb":
      return mysqlDatabase(connection, flags);
    default:
      throw new CommandError(
        `unknown protocol ${JSON.stringify(protocol)} of the database`,
        `Expected postgres://, postgresql://, mysql:// or mariadb://, as in ${EXAMPLE}.`,
      );
  }
}

function postgresDatabase(connection: string, flags: FeedFlags): FeedDatabase {
  const { publication = "xcache", table: tables = [], notify = false } = flags;
  return {
    statements() {
      if (tables.length > 0) return setUpSql({ publication, tables, notify });
      throw new CommandError("--sql needs the tables", "Name each one, as in --table users --table orders.");
    },
    check: (timeoutMs) => checkSetUp(connection, { publication, tables }, timeoutMs),
  };
}

function mysqlDatabase(connection: string, flags: FeedFlags): FeedDatabase {
  for (const flag of ["publication", "notify"] as const) {
    if (flags[flag] === undefined) continue;
    throw new CommandError(`--${flag} is for PostgreSQL`, "A feed of MariaDB reads the binary log.");
  }
  return {
    statements() {
      const name = /^[^/]*\/\/[^/]*\/([^?#]+)/.exec(connection)?.[1];
      if (name !== undefined) return mysqlSetUpSql(decoded(name));
      throw new CommandError("the address names no database", "Name it, as in mysql://user@host/database.");
    },
    check: (timeoutMs) => checkMysqlSetUp(connection, { tables: flags.table ?? [] }, timeoutMs),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function checkDatabase(context: CommandContext, check: FeedDatabase["check"]): Promise<ExitCode> {
  const { out, flags, interrupt } = context;
  const timeoutMs = flags.timeout === undefined ? undefined : flags.timeout * 1_000;
  let findings: readonly SetUpFinding[] | undefined;
  try {
    findings = await unlessStopped(check(timeoutMs), interrupt.signal);
  } catch (error) {
    if (error instanceof MissingPeerError) throw error;
    const { message } = error as Error;
    throw new CommandError(
      `the database cannot be reached: ${message || (error as NodeJS.ErrnoException).code}`,
      "Check the address, the role and its password.",
      EXIT.unreachable,
    );
  }
  if (findings === undefined) return EXIT.interrupted;
  const isFine = findings.every(({ state }) => state !== "problem");
  if (out.json) await out.jsonLine({ ok: isFine, findings });
  else for (const finding of findings) await out.lines(findingLines(out, finding));
  return isFine ? EXIT.ok : EXIT.failed;
}
