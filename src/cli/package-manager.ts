// Which package manager a folder uses, and how it is told to add packages.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Environment } from "../config/env.ts";

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

/** What the nearest package.json or lock file says, else who runs us, else npm. */
export function packageManagerOf(folder: string, env: Environment): PackageManager {
  for (let at = folder; ; at = dirname(at)) {
    const named = namedIn(join(at, "package.json"));
    if (named !== undefined) return named;
    const lock = Object.keys(LOCK_FILES).find((name) => existsSync(join(at, name)));
    if (lock !== undefined) return LOCK_FILES[lock]!;
    if (at === dirname(at)) break;
  }
  const runner = env.npm_config_user_agent?.split("/")[0];
  return isManager(runner) ? runner : "npm";
}

/** Corepack's field: `"packageManager": "pnpm@10.1.0"`. */
function namedIn(manifest: string): PackageManager | undefined {
  try {
    const { packageManager } = JSON.parse(readFileSync(manifest, "utf8")) as { packageManager?: unknown };
    const name = typeof packageManager === "string" ? packageManager.split("@")[0] : undefined;
    return isManager(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** Its arguments that add these packages. */
export const addArguments = (manager: PackageManager, packages: readonly string[]): readonly string[] => [
  ADD[manager],
  ...packages,
];

/** A command line that any shell reads as meant. */
export function commandLine(words: readonly string[]): string {
  return words.map((word) => (/^[\w@/.:=+-]+$/.test(word) ? word : `"${word}"`)).join(" ");
}
