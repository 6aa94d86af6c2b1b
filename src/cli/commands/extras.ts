// xcache extras: prints or runs the command that installs the packages a feature needs.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { addWords, commandLine, packageManagerOf } from "../../core/package-manager.ts";
import { installedVersion } from "../../core/peer-versions.ts";
import { suggestName } from "../../core/suggest-name.ts";
import type { CommandContext, CommandInput } from "../command-spec.ts";
import { EXTRA_NAMES, EXTRAS, type ExtraName } from "../doctor/extras.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";

export async function run({ out, env }: CommandContext, { args, options }: CommandInput): Promise<ExitCode> {
  const names = args.map(requireExtra);
  const packages = [...new Set(names.flatMap((name) => EXTRAS[name]))];
  const manager = packageManagerOf(process.cwd(), env);
  const words = addWords(manager, packages);
  const command = packages.length === 0 ? null : commandLine(words);
  const installed = packages.filter((name) => installedVersion(name) !== undefined);
  if (out.json) {
    await out.jsonLine({ extras: names, package_manager: manager, packages, installed, command });
  } else if (command === null)
    out.say(`${names.join(", ")}: nothing to install, no extra packages are needed`);
  else {
    await out.line(command);
    if (installed.length > 0) out.note(`already installed: ${installed.join(", ")}`);
  }
  await out.flush();
  return options.install === true && command !== null ? install(words) : EXIT.ok;
}

function requireExtra(name: string): ExtraName {
  if ((EXTRA_NAMES as readonly string[]).includes(name)) return name as ExtraName;
  throw new CommandError(
    `unknown extra ${JSON.stringify(name)}`,
    `${sentence(suggestName(name, EXTRA_NAMES))}`,
  );
}

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}`;

/** The package manager's output goes to stderr: stdout carries only the command. */
async function install([manager = "npm", ...args]: readonly string[]): Promise<ExitCode> {
  // On Windows package managers are scripts and need a shell; every word comes from our own tables.
  const child = spawn(manager, args, { stdio: ["inherit", 2, 2], shell: process.platform === "win32" });
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    if (code === 0) return EXIT.ok;
    throw new CommandError(
      `${manager} exited with ${code === null ? "a signal" : `code ${code}`}`,
      "See its output above.",
      EXIT.failed,
    );
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      `could not run ${manager}`,
      `Install ${manager}, or run the command yourself.`,
      EXIT.failed,
    );
  }
}
