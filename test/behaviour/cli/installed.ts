// The program as a user gets it: packed, and installed into a folder of its own.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { packedPackage } from "../../support/packed-package.ts";
import { runFolder } from "../../support/run-folder.ts";

const ROOT = join(import.meta.dirname, "../../..");

interface Manifest {
  readonly bin: { readonly xcache: string };
  readonly dependencies: Readonly<Record<string, string>>;
}

/** Installed once for all test files of a run. Returns the path of the program. */
export function installedProgram(): string {
  const folder = join(runFolder(), "cli-installed");
  if (!existsSync(folder)) install(folder);
  const place = join(folder, "node_modules/xcache");
  const manifest = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Manifest;
  return join(place, manifest.bin.xcache);
}

function install(folder: string): void {
  const making = mkdtempSync(`${folder}-`);
  const packages = join(making, "node_modules");
  const place = join(packages, "xcache");
  mkdirSync(place, { recursive: true });
  execFileSync("tar", ["xzf", packedPackage().tarball, "-C", place, "--strip-components=1"]);
  const { dependencies } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as Manifest;
  // What npm would install as well, and the peer that the disk store needs.
  for (const name of [...Object.keys(dependencies), "lmdb"]) {
    mkdirSync(dirname(join(packages, name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), join(packages, name));
  }
  try {
    renameSync(making, folder);
  } catch (error) {
    // Another test file was faster.
    rmSync(making, { recursive: true, force: true });
    if (!existsSync(folder)) throw error;
  }
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly cwd?: string;
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The minimal environment: no cache settings and no colour preferences. */
export function bareEnvironment(more: Readonly<Record<string, string>> = {}): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return { PATH, HOME, LANG: "C.UTF-8", TERM: "xterm-256color", ...more };
}

export function start(args: readonly string[], { env = {}, cwd }: RunOptions = {}): ChildProcess {
  return spawn(process.execPath, [installedProgram(), ...args], {
    env: bareEnvironment(env),
    stdio: ["pipe", "pipe", "pipe"],
    ...(cwd !== undefined && { cwd }),
  });
}

/** Runs the program to its end, its output piped. */
export async function xcache(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = start(args, options);
  child.stdin?.on("error", () => {});
  child.stdin?.end(options.input ?? "");
  const [stdout, stderr] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, "close"),
  ]);
  return { code: child.exitCode, stdout, stderr };
}

/** Each line of the output as JSON. */
export function jsonLines<T = Record<string, unknown>>({ stdout }: Ran): T[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}
