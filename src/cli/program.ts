// The whole command line: builds the parser from the command table, runs a command and reports its outcome.
import { Command, CommanderError, Option } from "commander";
import pc from "picocolors";
import { redactText } from "../core/redact.ts";
import { closestName } from "../core/suggest-name.ts";
import { VERSION } from "../version.ts";
import type { CommandContext, CommandSpec, GlobalFlags, OptionSpec } from "./command-spec.ts";
import { optionNames } from "./completion/candidates.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { type Failure, failureOf } from "./failure.ts";
import { Interrupt } from "./interrupt.ts";
import { COMMANDS, GLOBAL_OPTIONS } from "./specs/table.ts";
import { jsonText, visibleLines } from "./terminal/escape.ts";
import { Output } from "./terminal/output.ts";
import { hasColour } from "./terminal/terminal.ts";

/** Runs a command line and returns the exit code. Never throws. */
export async function runProgram(given: readonly string[]): Promise<ExitCode> {
  const run: Run = { exitCode: EXIT.ok, parserOutput: "" };
  const program = makeProgram(given, run);
  try {
    await program.parseAsync(given, { from: "user" });
    return run.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return EXIT.ok;
    reportUsageError(withSuggestion(error, run.parserOutput), given.includes("--json"));
    return EXIT.usage;
  }
}

interface Run {
  exitCode: ExitCode;
  /** What the parser wrote to stderr. */
  parserOutput: string;
}

function makeProgram(given: readonly string[], run: Run): Command {
  const isAllowed = !given.includes("--no-color");
  const hasColours = hasColour(process.stdout, process.env, isAllowed);
  const { bold } = pc.createColors(hasColours);
  const program = new Command("xcache")
    .description("Inspect, search and manage a cache from the terminal.")
    .usage("<command> [options]")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show the help of a command")
    .configureHelp({ showGlobalOptions: true, styleTitle: bold })
    .configureOutput({
      writeErr: (text) => {
        run.parserOutput += text;
      },
      getOutHasColors: () => hasColours,
      getErrHasColors: () => false,
    })
    .exitOverride()
    .showHelpAfterError("See `xcache --help`.")
    .addHelpText("after", examplesText(bold, PROGRAM_EXAMPLES) + EXIT_CODES);
  for (const option of GLOBAL_OPTIONS) program.addOption(optionOf(option));
  for (const spec of [...COMMANDS, COMPLETE]) addCommand(program, spec, run, bold);
  return program;
}

/** Called by the completion scripts. Not in the command table, because it reads that table. */
const COMPLETE: CommandSpec = {
  name: "complete",
  group: "Tools",
  summary: "print completion candidates; called by the completion scripts",
  arguments: [{ name: "[words...]", summary: "the words after xcache, the last one incomplete" }],
  options: [
    {
      flags: "--bash-breaks <characters>",
      summary: "COMP_WORDBREAKS; the only argument is then the bash line up to the cursor",
    },
  ],
  examples: [],
  isHidden: true,
  load: () => import("./commands/complete.ts"),
};

const PROGRAM_EXAMPLES = [
  ["xcache doctor", "start here"],
  ["xcache stats --watch", "live statistics"],
  ["xcache list --pattern 'user:*' --long", "the entries below user:"],
  ["xcache invalidate --tags users", "remove them by tag"],
] as const;

const EXIT_CODES = `
Exit codes:
  0 done, 1 failed or unhealthy, 2 wrong usage or configuration,
  3 store unreachable, 4 not supported, 130 interrupted
`;

function addCommand(program: Command, spec: CommandSpec, run: Run, bold: (text: string) => string): void {
  const command = program
    .command(spec.name, { hidden: spec.isHidden ?? false })
    .summary(spec.summary)
    .description([sentence(spec.summary), spec.detail].filter(Boolean).join("\n\n"))
    .helpGroup(`${spec.group}:`)
    .showHelpAfterError(`See \`xcache ${spec.name} --help\`.`);
  for (const { name, summary } of spec.arguments ?? []) command.argument(name, summary);
  for (const option of spec.options ?? []) command.addOption(optionOf(option));
  command.addHelpText("after", examplesText(bold, spec.examples));
  command.action(async () => {
    run.exitCode = await runCommand(spec, program.opts<GlobalFlags>(), {
      args: command.args,
      options: command.opts(),
    });
  });
}

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`;

function optionOf({ flags, summary, parse }: OptionSpec): Option {
  const option = new Option(flags, summary);
  return parse === undefined ? option : option.argParser(parse);
}

function examplesText(bold: (text: string) => string, examples: CommandSpec["examples"]): string {
  if (examples.length === 0) return "";
  const lines = examples.map(([line, meaning]) => `  $ ${line}\n      ${meaning}`);
  return `\n${bold("Examples:")}\n${lines.join("\n")}\n`;
}

async function runCommand(
  spec: CommandSpec,
  flags: GlobalFlags,
  input: { readonly args: readonly string[]; readonly options: Readonly<Record<string, unknown>> },
): Promise<ExitCode> {
  const { env, stdin, stdout, stderr } = process;
  const out = new Output({ stdout, stderr, env, json: flags.json === true, color: flags.color });
  const interrupt = new Interrupt();
  const stop = AbortSignal.any([interrupt.signal, out.closed]);
  const context: CommandContext = { out, flags, env, stdin, interrupt, stop };
  const stopListening = interrupt.listen();
  try {
    const command = await spec.load();
    const exitCode = await command.run(context, input);
    await out.flush();
    return exitCode;
  } catch (error) {
    await out.flush();
    // An error caused by the interruption is not a failure.
    if (interrupt.isRaised) return EXIT.interrupted;
    if (out.closed.aborted) return EXIT.ok;
    const usesDefault = flags.kvUrl === undefined && flags.config === undefined && !env.XCACHE_KV_URL;
    const failure = failureOf(error, usesDefault);
    reportFailure(out, failure);
    return failure.exitCode;
  } finally {
    stopListening();
  }
}

function reportFailure(out: Output, { code, message, hint, exitCode }: Failure): void {
  if (out.json) out.say(jsonText({ error: { code, message, hint, exit_code: exitCode } }));
  else out.say(`${out.message.red("error:")} ${message}\n${out.message.cyan("hint:")} ${hint}`);
}

const UNKNOWN_OPTION = /^error: unknown option '(--[^=']+)=/;

/** The parser suggests a similar option for `--opton value`, but not for `--opton=value`. */
function withSuggestion({ code }: CommanderError, message: string): string {
  const [, name] = (code === "commander.unknownOption" && UNKNOWN_OPTION.exec(message)) || [];
  const [first = "", ...rest] = message.split("\n");
  if (name === undefined || rest.some((line) => line.startsWith("(Did you mean"))) return message;
  const command = /`xcache (\S+) --help`/.exec(message)?.[1];
  const nearest = closestName(name, optionNames(COMMANDS.find((spec) => spec.name === command)));
  return [first, ...(nearest === undefined ? [] : [`(Did you mean ${nearest}?)`]), ...rest].join("\n");
}

/** Redacted, since the command line may contain an address with credentials. Without a command it is the help. */
function reportUsageError(message: string, isJson: boolean): void {
  const text = visibleLines(redactText(message)).trimEnd();
  if (!isJson) {
    process.stderr.write(`${text}\n`);
    return;
  }
  const [first = "", ...rest] = text.split("\n");
  const error = {
    code: "usage",
    message: first.replace(/^error: /, ""),
    hint: rest.filter(Boolean).join(" ") || "See xcache --help.",
    exit_code: EXIT.usage,
  };
  process.stderr.write(`${jsonText({ error })}\n`);
}
