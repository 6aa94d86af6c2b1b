// The package as npm packs it, and its dependencies: once per run, for all tests that look at it.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { whyStale } from "../../scripts/build/build.mjs";
import { npmEnvironment } from "../../scripts/release/npm-environment.mjs";
import { runtimeDependencies } from "../../scripts/test/extras-folder.mjs";
import { runFolder } from "./run-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const PATIENCE_MS = 240_000;

/** What npm says of a tarball. */
interface Tarball {
  readonly name: string;
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

export interface PackedPackage extends Tarball {
  /** The path of the tarball. */
  readonly tarball: string;
  /** Those of its dependencies. */
  readonly dependencies: readonly string[];
}

type Outcome = { readonly packed: readonly Tarball[] } | { readonly problem: string };

/** Packed by this process, or by another one of the run, which is waited for. */
export function packedPackage(): PackedPackage {
  const folder = join(runFolder(), "packed-package");
  const outcome = join(folder, "outcome.json");
  if (isMade(folder)) {
    writeFileSync(`${outcome}.part`, JSON.stringify(packIn(folder)));
    renameSync(`${outcome}.part`, outcome);
  }
  waitFor(outcome);
  const made = JSON.parse(readFileSync(outcome, "utf8")) as Outcome;
  if ("problem" in made) throw new Error(made.problem);
  const isOwn = ({ name }: Tarball): boolean => name === "xcache";
  const place = ({ filename }: Tarball): string => join(folder, filename);
  const own = made.packed.find(isOwn)!;
  const dependencies = made.packed.filter((each) => !isOwn(each)).map(place);
  return { ...own, tarball: place(own), dependencies };
}

function packIn(folder: string): Outcome {
  const stale = whyStale();
  if (stale !== undefined) return { problem: `${stale}: run \`npm run build\`` };
  const args = ["pack", "--ignore-scripts", "--json", "--loglevel=error", ROOT, ...runtimeDependencies()];
  try {
    const said = execFileSync("npm", args, { cwd: folder, env: npmEnvironment(), encoding: "utf8" });
    return { packed: Object.values(JSON.parse(said) as Record<string, Tarball>) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Makes a folder; false if it is there already: then another process of the run fills it. */
export function isMade(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

function waitFor(file: string): void {
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let waitedMs = 0; !existsSync(file); waitedMs += 50) {
    if (waitedMs > PATIENCE_MS) throw new Error("npm has not packed the package in time");
    Atomics.wait(never, 0, 0, 50);
  }
}
