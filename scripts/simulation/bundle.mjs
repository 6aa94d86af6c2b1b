// Bundles the simulation with the library's sources: on the simulated network, and optionally with a mutation of the sources.
import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rollup } from "rollup";
import { parseAst } from "rollup/parseAst";
import { transformWithEsbuild } from "vite";

/**
 * @typedef {import("../../test/simulation/mutations.ts").Mutation} Mutation
 */

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const ENTRY = join(ROOT, "test/simulation/index.ts");
const SOCKET = join(ROOT, "src/backends/wire/socket.ts");
const SIMULATED_SOCKET = join(ROOT, "test/simulation/socket.ts");
const SOURCES = join(ROOT, "src");

/** What the sources get in place of Node's and V8's, and from which module. @type {Record<string, [string, string]>} */
const REPLACED = {
  nextTick: ["nextTick", "turn.ts"],
  setImmediate: ["setImmediate", "turn.ts"],
  WeakMap: ["ValuesInKeys", "values-in-keys.ts"],
};

/** What the modules compile to, for the next bundle. @type {Map<string, string>} */
const compiled = new Map();

/** @type {Set<string>} */
const written = new Set();

function removeWritten() {
  for (const file of written) rmSync(file, { force: true });
}

/**
 * The library runs in turns of the simulated event loop, and leaves nothing behind that only a full collection would find.
 * @param {string} path @param {string} source
 */
async function compile(path, source) {
  const isOurs = path.startsWith(SOURCES);
  const { code } = await transformWithEsbuild(source, path, {
    loader: "ts",
    target: "node20",
    sourcemap: false,
    ...(isOurs ? { define: { "process.nextTick": "nextTick" } } : {}),
  });
  return (isOurs ? importsOfReplaced(code) : "") + youngFunctions(code);
}

/** @param {string} code */
function importsOfReplaced(code) {
  const taken = Object.entries(REPLACED).filter(([name]) => new RegExp(`\\b${name}\\b`).test(code));
  return taken
    .map(
      ([name, [own, file]]) =>
        `import { ${own} as ${name} } from "${join(ROOT, "test/simulation", file)}";\n`,
    )
    .join("");
}

/**
 * V8 takes a function that is assigned to a property for one that lasts, and allocates it in the old generation: there it keeps
 * the world that it belongs to, long after its schedule. A function in an expression is not taken for one.
 * @param {string} code
 */
function youngFunctions(code) {
  if (!/\.#?[\w$]+ = (async\b|function\b|\(|[\w$]+ =>)/.test(code)) return code;
  /** @type {{ at: number, text: string }[]} */
  const added = [];
  const visit = (/** @type {any} */ node) => {
    if (typeof node !== "object" || node === null) return;
    const { type, left, right } = node;
    if (type === "AssignmentExpression" && left.type === "MemberExpression" && /Function/.test(right.type))
      added.push({ at: right.start, text: "(0, " }, { at: right.end, text: ")" });
    Object.values(node).forEach(visit);
  };
  visit(parseAst(code));
  // From the last one, so that those before it stay where they are.
  return added
    .sort((one, other) => other.at - one.at)
    .reduce((changed, { at, text }) => changed.slice(0, at) + text + changed.slice(at), code);
}

/**
 * Our own TypeScript. The simulated socket replaces the real one, except in the simulated one itself.
 * @param {Mutation | undefined} mutation
 * @returns {import("rollup").Plugin}
 */
function sources(mutation) {
  return {
    name: "sources",
    resolveId(source, importer) {
      if (importer === undefined || isAbsolute(source)) return source;
      if (!source.startsWith(".")) return { id: source, external: true };
      const path = join(dirname(importer), source);
      return path === SOCKET && importer !== SIMULATED_SOCKET ? SIMULATED_SOCKET : path;
    },
    async load(path) {
      const patches = mutation?.patches.filter(({ file }) => file === relative(ROOT, path)) ?? [];
      if (patches.length > 0) return compile(path, patches.reduce(patched, await readFile(path, "utf8")));
      const code = compiled.get(path) ?? (await compile(path, await readFile(path, "utf8")));
      compiled.set(path, code);
      return code;
    },
  };
}

/**
 * @param {string} source
 * @param {import("../../test/simulation/mutations.ts").Patch} patch
 */
function patched(source, { file, find, replace }) {
  if (source.split(find).length !== 2) throw new Error(`${file} must contain this exactly once: ${find}`);
  return source.replace(find, () => replace);
}

/**
 * Returns the URL of a module with everything that test/simulation/index.ts exports.
 * @param {Mutation} [mutation]
 */
export async function bundle(mutation) {
  const name = mutation === undefined ? "whole" : mutation.name.replaceAll(/[^a-z]+/gi, "-");
  const file = join(ROOT, ".cache/simulation", `${process.pid}-${name}.mjs`);
  const built = await rollup({
    input: ENTRY,
    plugins: [sources(mutation)],
    treeshake: false,
    onwarn: () => {},
  });
  await built.write({ file, format: "es", inlineDynamicImports: true });
  await built.close();
  // Next to the sources, where imports of packages are resolved; another process creates its own.
  if (written.size === 0) process.once("exit", removeWritten);
  written.add(file);
  return pathToFileURL(file).href;
}
