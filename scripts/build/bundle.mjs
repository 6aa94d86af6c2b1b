// Bundles the compiled modules into a few files: Node takes longer to find and open a file than to read a large one.
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { rollup } from "rollup";
import { compact } from "./compact.mjs";
import { FACADE, onDemand, PART } from "./on-demand.mjs";

const STORES = ["disk", "kv", "memcached"];

/** What only sentinels and clusters need, below backends/kv. */
const SEVERAL_SERVERS = ["cluster", "sentinel", "several-servers.js"];

/** Commands that load more than the others do, and what completes words while somebody types. */
const APART = ["complete.js", "db.js", "search.js", "ui.js"];

/** What looks at a cache: seldom used, and small. */
const INSIGHT = ["advice", "metrics"];

/**
 * The files that are read together, by the module that needs all of them: the first group that a module belongs to is its
 * file. Each further file takes Node about a millisecond, whatever is in it. What is loaded on demand belongs to no group but its own.
 */
const GROUPS = {
  cache: "index.js",
  [PART]: "cached-dependency.js",
  store: "cache/open-shared.js",
  sql: "db/sql/settled-statement.js",
};

/**
 * What package.json exports, and what it lists as programs: paths below dist without their extension.
 * @param {string} root
 */
function targetsOf(root) {
  const { exports = {}, bin = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  /** @param {string} target */
  const bare = (target) => target.replace(/^\.\/dist\//, "").replace(/(\.d\.ts|\.js)$/, "");
  const modules = Object.values(exports).filter((target) => typeof target !== "string");
  // The conditions of an entry lead to different files, but to one declaration.
  return { imported: modules.map((target) => bare(target.types)), run: Object.values(bin).map(bare) };
}

/**
 * Both together.
 * @param {string} root
 * @returns {string[]}
 */
export function entriesOf(root) {
  const { imported, run } = targetsOf(root);
  return [...imported, ...run];
}

/**
 * The file that a module outside of the groups is bundled into. Undefined: left to the bundler.
 * @param {string} path Below the folder of modules.
 */
function fileOf(path) {
  const [folder = "", below = "", third = ""] = path.split("/");
  if (below === "kv" && SEVERAL_SERVERS.includes(third)) return "kv-servers";
  if (folder === "backends") return STORES.includes(below) ? below : "store";
  if (folder === "cli" && below === "commands") return APART.includes(third) ? undefined : "commands";
  if (INSIGHT.includes(folder)) return "insight";
  return folder === "ecosystem" ? undefined : folder;
}

/**
 * The modules imported statically by a module, including itself.
 * @param {string} id
 * @param {import("rollup").GetModuleInfo} getModuleInfo
 * @param {string} without Not followed.
 * @returns {Set<string>}
 */
function importedWith(id, getModuleInfo, without) {
  const found = new Set([id]);
  for (const each of found)
    for (const next of getModuleInfo(each)?.importedIds ?? []) if (next !== without) found.add(next);
  return found;
}

/** Built after the bundle; bundlers of applications follow the import. */
const PAGE = "/dist/dashboard/page.js";

/** Marks the copy of a module. */
const OWN = "?own";

/**
 * The program prints its version without loading the library. It has a copy of that line: a file for both would be one more to
 * open for everybody.
 * @type {import("rollup").Plugin}
 */
const ownVersion = {
  name: "own-version",
  resolveId: (source, importer = "") =>
    importer.endsWith("/cli/main.js") && source === "../version.js"
      ? join(dirname(importer), `${source}${OWN}`)
      : null,
};

/**
 * Reads modules with the maps to their sources. The compiler names those from where it wrote the modules, which may have moved since.
 * @param {string} root
 * @param {string} modules
 * @returns {import("rollup").Plugin}
 */
const fromSources = (root, modules) => ({
  name: "from-sources",
  load: (id) => {
    const path = id.replace(OWN, "");
    const source = join(root, "src", relative(modules, path).replace(/js$/, "ts"));
    const map = JSON.parse(readFileSync(`${path}.map`, "utf8"));
    return { code: readFileSync(path, "utf8"), map: { ...map, sources: [source] } };
  },
});

/**
 * @param {string} root
 * @param {string} modules
 * @param {string} dist
 */
async function bundle(root, modules, dist) {
  const entries = entriesOf(root);
  /** @type {[string, Set<string>][] | undefined} */
  let groups;
  const graph = await rollup({
    input: Object.fromEntries([...entries, FACADE].map((entry) => [entry, join(modules, `${entry}.js`)])),
    external: (id) => id.endsWith(PAGE) || (!id.startsWith(".") && !isAbsolute(id)),
    plugins: [ownVersion, fromSources(root, modules)],
    treeshake: { moduleSideEffects: false },
    // A cycle of files would be one of folders, or a badly chosen group above.
    onLog: (_, { message, code }) => {
      // The compiler's own helper for an import of a computed address.
      if (code === "THIS_IS_UNDEFINED") return;
      throw new Error(message);
    },
  });
  await graph.write({
    dir: dist,
    format: "es",
    entryFileNames: "[name].js",
    // As deep as an entry, so that relative paths work from either.
    chunkFileNames: "chunk/[name].js",
    manualChunks: (id, { getModuleInfo }) => {
      const path = relative(modules, id);
      if (path.endsWith(OWN) || entries.includes(path.replace(/\.js$/, ""))) return undefined;
      if (path === `${FACADE}.js`) return "cache";
      groups ??= Object.entries(GROUPS).map(([name, first]) => [
        name,
        importedWith(join(modules, first), getModuleInfo, join(modules, GROUPS[PART])),
      ]);
      return groups.find(([, members]) => members.has(id))?.[0] ?? fileOf(path);
    },
    minifyInternalExports: false,
    hoistTransitiveImports: false,
    generatedCode: "es2015",
    sourcemap: "hidden",
    plugins: [onDemand(), compact(root)],
  });
  await graph.close();
  copyTypes(modules, dist, targetsOf(root).imported);
}

/**
 * The declarations of what can be imported, and those they refer to.
 * @param {string} modules
 * @param {string} dist
 * @param {readonly string[]} imported
 */
function copyTypes(modules, dist, imported) {
  const pending = imported.map((entry) => `${entry}.d.ts`);
  const copied = new Set();
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (copied.has(path)) continue;
    copied.add(path);
    mkdirSync(dirname(join(dist, path)), { recursive: true });
    copyFileSync(join(modules, path), join(dist, path));
    const text = readFileSync(join(modules, path), "utf8");
    for (const [, target = ""] of text.matchAll(/(?:from |import\()"(\.[^"]+)\.[jt]s"/g))
      pending.push(`${join(dirname(path), target)}.d.ts`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [root = "", modules = "", dist = ""] = process.argv.slice(2);
  await bundle(root, modules, dist);
}
