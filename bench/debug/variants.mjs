// Builds of the library to compare: as it is, without the calls that `DEBUG` needs, and without any check for tracing.
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { transformWithEsbuild } from "vite";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OUT = join(ROOT, ".cache/bench-debug");
const ENTRY = "bench:debug";
const ENTRY_CODE = [
  `export { XCache } from ${JSON.stringify(join(ROOT, "src/index.ts"))};`,
  `export { httpCache } from ${JSON.stringify(join(ROOT, "src/web/fetch.ts"))};`,
].join("\n");

/** @typedef {readonly [file: string, find: RegExp, replacement: string, count: number]} Patch */

/** Where decisions are passed on; each is skipped at runtime unless `DEBUG` asks for it. @type {readonly Patch[]} */
const DECISIONS = [
  ["src/xcache.ts", /const log = this\.#decisionLog\(\);/g, "", 1],
  ["src/xcache.ts", /\.\.\.\(log !== undefined && .*\),\n/g, "", 1],
  ["src/metrics/recording/telemetry.ts", /this\.decisions\?\.\w+\(.*\);/g, "", 2],
  [
    "src/metrics/recording/telemetry.ts",
    /this\.decisions === undefined \? run\(\) : this\.decisions\.around\(.*\);/g,
    "run();",
    1,
  ],
  ["src/core/loading/loader.ts", /this\.#host\.notStored\?\.\(.*\);/g, "", 3],
  ["src/web/engine/engine.ts", /this\.#decide\?\.\(.*\)(?=[,;]\n)/g, "undefined", 4],
];

/** The checks for subscribers of tracing channels and for spans, which `DEBUG` shares. @type {readonly Patch[]} */
const TRACING = [
  ["src/metrics/tracing.ts", /(export const is\w+Traced = \(\): boolean =>)\s[^;]+;/g, "$1 false;", 5],
  [
    "src/metrics/tracing.ts",
    /(export function isTraced\(operation: string\): boolean \{)/g,
    "$1 return false;",
    1,
  ],
];

/** @type {Readonly<Record<string, readonly Patch[]>>} */
export const VARIANTS = {
  "as it is": [],
  "without decisions": DECISIONS,
  "without any tracing": [...DECISIONS, ...TRACING],
};

/**
 * Throws if the sources have changed so that a patch no longer fits.
 * @param {string} source
 * @param {Patch} patch
 */
function patched(source, [file, find, replacement, count]) {
  const found = source.match(find)?.length ?? 0;
  if (found !== count) throw new Error(`${file} has ${found} matches of ${find}, expected ${count}`);
  return source.replace(find, replacement);
}

/**
 * Bundles one variant and returns the path of the module.
 * @param {string} name
 */
export async function build(name) {
  const patches = VARIANTS[name] ?? [];
  const bundle = await rollup({
    input: ENTRY,
    plugins: [
      {
        name: "sources",
        resolveId(source, importer) {
          if (source === ENTRY || isAbsolute(source)) return source;
          if (!source.startsWith(".") || importer === undefined) return { id: source, external: true };
          return join(dirname(importer), source);
        },
        async load(path) {
          if (path === ENTRY) return ENTRY_CODE;
          const file = relative(ROOT, path);
          const source = patches.filter(([of]) => of === file).reduce(patched, await readFile(path, "utf8"));
          const { code } = await transformWithEsbuild(source, path, { loader: "ts", target: "node20" });
          return code;
        },
      },
    ],
    onwarn: () => {},
  });
  mkdirSync(OUT, { recursive: true });
  const file = join(OUT, `${name.replaceAll(" ", "-")}.mjs`);
  await bundle.write({ file, format: "es", inlineDynamicImports: true });
  await bundle.close();
  return file;
}
