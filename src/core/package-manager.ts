// Detects the package manager of a folder and builds its install command.
import { nodeFs, nodePath } from "./lazy-builtin.ts";
import { OLDEST_SUPPORTED } from "./peer-versions.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const ADD = { npm: "install", pnpm: "add", yarn: "add", bun: "add" } as const;
export type PackageManager = keyof typeof ADD;

const LOCK_FILES: Readonly<Record<string, PackageManager>> = {
  "pnpm-lock.yaml": "pnpm",
  "yarn.lock": "yarn",
  "bun.lock": "bun",
  "bun.lockb": "bun",
  "package-lock.json": "npm",
  "npm-shrinkwrap.json": "npm",
};

const isManager = (name: string | undefined): name is PackageManager =>
  name !== undefined && Object.hasOwn(ADD, name);

/** From the nearest package.json or lock file, else the package manager running this process, else npm. */
export function packageManagerOf(folder: string, env: Environment): PackageManager {
  const { dirname, join } = nodePath();
  for (let at = folder; ; at = dirname(at)) {
    const named = namedIn(join(at, "package.json"));
    if (named !== undefined) return named;
    const lock = Object.keys(LOCK_FILES).find((name) => nodeFs().existsSync(join(at, name)));
    if (lock !== undefined) return LOCK_FILES[lock]!;
    if (at === dirname(at)) break;
  }
  const runner = env.npm_config_user_agent?.split("/")[0];
  return isManager(runner) ? runner : "npm";
}

/** Corepack's field: `"packageManager": "pnpm@10.1.0"`. */
function namedIn(manifest: string): PackageManager | undefined {
  try {
    const { packageManager } = JSON.parse(nodeFs().readFileSync(manifest, "utf8")) as {
      packageManager?: unknown;
    };
    const name = typeof packageManager === "string" ? packageManager.split("@")[0] : undefined;
    return isManager(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The arguments that add these packages in supported versions. */
export function addWords(manager: PackageManager, packages: readonly string[]): readonly string[] {
  return [manager, ADD[manager], ...packages.map((name) => `${name}${range(name)}`)];
}

/** Such as `@>=6.0.0`. */
function range(name: string): string {
  const oldest = OLDEST_SUPPORTED[name];
  return oldest === undefined ? "" : `@>=${oldest}`;
}

/** The command that installs a package in this folder; npm's if detection fails. */
export function installCommand(name: string): string {
  try {
    return commandLine(addWords(packageManagerOf(process.cwd(), process.env), [name]));
  } catch {
    return `npm install ${name}`;
  }
}

/** The words as a command line for any shell. */
export function commandLine(words: readonly string[]): string {
  return words.map((word) => (/^[\w@/.:=+-]+$/.test(word) ? word : `"${word}"`)).join(" ");
}
