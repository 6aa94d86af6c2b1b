// Compiles src into dist. With --if-stale only when dist is not exactly what src would give.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/**
 * Files under a folder, relative to it, that pass.
 * @param {string} folder
 * @param {(path: string) => boolean} accept
 */
function list(folder, accept) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(accept);
}

/** Why dist does not match src; undefined when it does. */
export function whyStale(root = ROOT) {
  const sources = list(join(root, "src"), (path) => path.endsWith(".ts"));
  const outputs = new Set(list(join(root, "dist"), (path) => path.endsWith(".js")));
  /** @param {string} path */
  const modified = (path) => statSync(join(root, path)).mtimeMs;
  for (const source of sources) {
    const output = source.replace(/ts$/, "js");
    if (!outputs.delete(output)) return `dist/${output} is missing`;
    const built = modified(`dist/${output}`);
    const newer = [`src/${source}`, "tsconfig.json", "tsconfig.build.json"].find(
      (path) => modified(path) > built,
    );
    if (newer !== undefined) return `dist/${output} is older than ${newer}`;
  }
  const [orphan] = outputs;
  return orphan === undefined ? undefined : `dist/${orphan} has no source`;
}

/** Compiles from scratch. Returns the compiler's exit code; on errors nothing is emitted. */
export function build(root = ROOT) {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const project = join(root, "tsconfig.build.json");
  return spawnSync(process.execPath, [compiler, "-p", project], { stdio: "inherit" }).status ?? 1;
}

/** Compiles unless dist matches src already. Returns the exit code. */
export function buildIfStale() {
  return whyStale() === undefined ? 0 : build();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = process.argv.includes("--if-stale") ? buildIfStale() : build();
}
