// xcache db feed: checks a database for a feed of its changes, or prints the statements that set it up.

import { suggestName } from "../../core/suggest-name.ts";
import { checkSetUp, type SetUpFinding, setUpSql } from "../../db/feed/set-up.ts";
import type { CommandInput } from "../command-spec.ts";
import type { CommandContext } from "../context.ts";
import { findingLines } from "../doctor/checks.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";
import { unlessStopped } from "../interrupt.ts";

const TOPICS = ["feed"];

export async function run(context: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const [topic = ""] = args;
  if (!TOPICS.includes(topic)) {
    throw new CommandError(`unknown topic ${JSON.stringify(topic)}`, `${suggestName(topic, TOPICS)}.`);
  }
  const { check, sql, publication = "xcache", table = [], notify = false } = options as FeedFlags;
  if (check === sql) throw new CommandError("pass either --check or --sql", "See `xcache db --help`.");
  const setUp = { publication, tables: table, notify };
  if (sql !== true) return checkDatabase(context, connectionOf(context, options), setUp);
  if (table.length === 0) {
    throw new CommandError("--sql needs the tables", "Name each one, as in --table users --table orders.");
  }
  const statements = setUpSql(setUp);
  if (context.out.json) await context.out.jsonLine({ sql: statements.join("\n") });
  else await context.out.lines(statements);
  return EXIT.ok;
}

interface FeedFlags {
  readonly check?: true;
  readonly sql?: true;
  readonly publication?: string;
  readonly table?: readonly string[];
  readonly notify?: boolean;
}

function connectionOf({ env }: CommandContext, options: CommandInput["options"]): string {
  const given = options.connection ?? env.DATABASE_URL;
  if (typeof given === "string" && given !== "") return given;
  throw new CommandError(
    "--check needs the database",
    "Pass --connection postgres://user@host/database, or set DATABASE_URL.",
  );
}

async function checkDatabase(
  context: CommandContext,
  connection: string,
  setUp: { readonly publication: string; readonly tables: readonly string[] },
): Promise<ExitCode> {
  const { out, flags, interrupt } = context;
  const timeoutMs = flags.timeout === undefined ? undefined : flags.timeout * 1_000;
  let findings: readonly SetUpFinding[] | undefined;
  try {
    findings = await unlessStopped(checkSetUp(connection, setUp, timeoutMs), interrupt.signal);
  } catch (error) {
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
