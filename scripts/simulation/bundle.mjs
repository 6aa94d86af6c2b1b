// The bundle of the simulation with the library's sources, optionally with a mutation: compiled once, until something changes.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * @typedef {import("../../test/simulation/mutations.ts").Mutation} Mutation
 */

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const SOURCES = join(ROOT, "src");
export const SIMULATION = join(ROOT, "test/simulation");
const COMPILER = join(ROOT, "scripts/simulation/compile.mjs");
/** The versions of the compilers. */
const LOCKED = join(ROOT, "package-lock.json");

/** Next to the sources, where imports of packages are resolved. */
const FOLDER = join(ROOT, ".cache/simulation");

/** What has not been used for so long is removed. */
const KEPT_MS = 24 * 3_600_000;

/** @type {Promise<string> | undefined} */
let everything;

/** A hash of all that a bundle without a mutation is made of. */
async function hashOfSources() {
  const hash = createHash("sha256");
  const files = [COMPILER, LOCKED];
  for (const folder of [SOURCES, SIMULATION]) {
    const names = await readdir(folder, { recursive: true });
    files.push(
      ...names
        .filter((name) => name.endsWith(".ts"))
        .sort()
        .map((name) => join(folder, name)),
    );
  }
  for (const file of files) hash.update(`${file}\n`).update(await readFile(file));
  return hash.digest("hex");
}

async function removeUnused() {
  for (const name of await readdir(FOLDER)) {
    const file = join(FOLDER, name);
    const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > KEPT_MS) await rm(file, { force: true });
  }
}

/**
 * Returns the URL of a module with everything that test/simulation/index.ts exports.
 * @param {Mutation} [mutation]
 */
export async function bundle(mutation) {
  everything ??= hashOfSources();
  const hash = createHash("sha256")
    .update(`${await everything} ${JSON.stringify(mutation?.patches)}`)
    .digest("hex");
  const name = mutation === undefined ? "whole" : mutation.name.replaceAll(/[^a-z]+/gi, "-");
  const file = join(FOLDER, `${name}-${hash.slice(0, 16)}.mjs`);
  if (existsSync(file)) await utimes(file, new Date(), new Date());
  else {
    // Loading the compilers takes as long as a thousand schedules do.
    const { compiledBundle } = await import("./compile.mjs");
    const code = await compiledBundle(mutation);
    await mkdir(FOLDER, { recursive: true });
    await removeUnused();
    // Another process may be looking for it.
    await writeFile(`${file}.${process.pid}`, code);
    await rename(`${file}.${process.pid}`, file);
  }
  return pathToFileURL(file).href;
}
