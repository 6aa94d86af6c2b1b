// Compiles the simulation with the library's sources into one module: on the simulated network, and optionally with a mutation.
import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join, relative } from "node:path";
import { rollup } from "rollup";
import { parseAst } from "rollup/parseAst";
import { transformWithEsbuild } from "vite";
import { ROOT, SIMULATION, SOURCES } from "./bundle.mjs";
import { openedFields } from "./opened-fields.mjs";

/**
 * @typedef {import("../../test/simulation/mutations.ts").Mutation} Mutation
 */

const ENTRY = join(SIMULATION, "index.ts");
const SOCKET = join(SOURCES, "backends/wire/socket.ts");
const SIMULATED_SOCKET = join(SIMULATION, "socket.ts");

/** What the sources get in place of Node's and V8's, and from which module. @type {Record<string, [string, string]>} */
const REPLACED = {
  nextTick: ["nextTick", "turn.ts"],
  setImmediate: ["setImmediate", "turn.ts"],
  WeakMap: ["ValuesInKeys", "values-in-keys.ts"],
};

/** What the modules compile to, for the next bundle. @type {Map<string, string>} */
const compiled = new Map();

/**
 * The library runs in turns of the simulated event loop, leaves nothing behind that only a full collection would find, and can
 * be asked what it has in memory.
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
  return isOurs ? importsOfReplaced(code) + youngFunctions(openedFields(code)) : youngFunctions(code);
}

/** @param {string} code */
function importsOfReplaced(code) {
  const taken = Object.entries(REPLACED).filter(([name]) => new RegExp(`\\b${name}\\b`).test(code));
  return taken
    .map(([name, [own, file]]) => `import { ${own} as ${name} } from "${join(SIMULATION, file)}";\n`)
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
      // What has been compiled is used again as long as nothing in these two folders changes.
      if (![SOURCES, SIMULATION].some((folder) => path.startsWith(folder)))
        throw new Error(`${importer} imports ${source}, which is not a part of the bundle`);
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
 * Returns the code of a module with everything that test/simulation/index.ts exports.
 * @param {Mutation | undefined} mutation
 */
export async function compiledBundle(mutation) {
  const built = await rollup({
    input: ENTRY,
    plugins: [sources(mutation)],
    treeshake: false,
    onwarn: () => {},
  });
  const { output } = await built.generate({ format: "es", inlineDynamicImports: true });
  await built.close();
  return output[0].code;
}
