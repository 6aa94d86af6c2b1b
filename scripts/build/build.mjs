// Compiles src into dist. With --if-stale only when dist does not match src.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { entriesOf } from "./bundle.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The sources of the dashboard's page, which becomes dist/dashboard/page.js. */
const PAGE = "dashboard";

/** Where each source file's own output is kept, for benchmarks and scripts that use internals. */
const MODULES = ".cache/modules";

/**
 * Files under a folder, relative to it, that `accept` accepts.
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
  const outputs = new Set(list(join(root, MODULES), (path) => path.endsWith(".js")));
  /** @param {string} path */
  const modified = (path) => statSync(join(root, path)).mtimeMs;
  const scripts = ["bundle", "compact"].map((name) => `scripts/build/${name}.mjs`);
  const settings = ["tsconfig.json", "tsconfig.build.json", ...scripts];
  let latest = 0;
  for (const source of sources) {
    const output = source.replace(/ts$/, "js");
    if (!outputs.delete(output)) return `${MODULES}/${output} is missing`;
    const built = modified(`${MODULES}/${output}`);
    latest = Math.max(latest, built);
    const newer = [`src/${source}`, ...settings].find((path) => modified(path) > built);
    if (newer !== undefined) return `${MODULES}/${output} is older than ${newer}`;
  }
  const [orphan] = outputs;
  if (orphan !== undefined) return `${MODULES}/${orphan} has no source`;
  for (const entry of entriesOf(root)) {
    const file = `dist/${entry}.js`;
    if (!existsSync(join(root, file))) return `${file} is missing`;
    if (modified(file) < latest) return `${file} is older than ${MODULES}`;
  }
  return whyPageStale(root, modified);
}

/**
 * @param {string} root
 * @param {(path: string) => number} modified
 */
function whyPageStale(root, modified) {
  const parts = list(join(root, PAGE), (path) => /\.(mjs|css)$/.test(path)).map((path) => `${PAGE}/${path}`);
  if (parts.length === 0) return undefined;
  const page = "dist/dashboard/page.js";
  if (!existsSync(join(root, page))) return `${page} is missing`;
  const newer = [...parts, "scripts/build/page.mjs"].find((path) => modified(path) > modified(page));
  return newer === undefined ? undefined : `${page} is older than ${newer}`;
}

/**
 * Compiles from scratch and, on success, swaps the result in by renaming: other processes may be
 * using the old one. Returns the exit code.
 */
export function build(root = ROOT) {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const work = mkdtempSync(join(root, ".cache/build-"));
  const [modules, dist] = [join(work, "modules"), join(work, "dist")];
  try {
    const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    const bundler = join(root, "scripts/build/bundle.mjs");
    for (const args of [
      [compiler, "-p", join(root, "tsconfig.build.json"), "--outDir", modules],
      [bundler, root, modules, dist],
      ...(existsSync(join(root, PAGE)) ? [[join(root, "scripts/build/page.mjs"), root, dist]] : []),
    ]) {
      const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
      if (status !== 0) return status ?? 1;
    }
    replace(modules, join(root, MODULES), join(work, "old-modules"));
    replace(dist, join(root, "dist"), join(work, "old-dist"));
    return 0;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/**
 * @param {string} next
 * @param {string} place
 * @param {string} aside
 */
function replace(next, place, aside) {
  if (existsSync(place)) renameSync(place, aside);
  renameSync(next, place);
}

/** Compiles unless dist already matches src. Returns the exit code. */
export function buildIfStale() {
  return whyStale() === undefined ? 0 : build();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.exitCode = process.argv.includes("--if-stale") ? buildIfStale() : build();
}
