// The architecture rules as functions over source files; each returns its violations as sentences.
import { builtinModules } from "node:module";
import { posix } from "node:path";
import { factsOf, type SourceFacts } from "./source.ts";

export interface SourceFile extends SourceFacts {
  /** Relative to src/, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Parses the file; the rules share the result. */
export const sourceFile = (path: string, text: string): SourceFile => ({
  path,
  text,
  ...factsOf(path, text),
});

/** Leaves: each may know the core and itself. */
const LEAVES = ["codec", "config", "backends", "metrics", "functions", "db", "health", "alerts", "search"];
/** The composition root: where the leaves are put together. */
const ROOT = ["xcache.ts", "cache", "advice", "cached-dependency.ts"];
/** What stands above the composition root. */
const TOPS = ["web", "cli", "testing", "ecosystem", "vector", "dashboard"];
const BELOW_ROOT = ["core", ...LEAVES, "version.ts"];
const BELOW_TOPS = [...BELOW_ROOT, ...ROOT];

/** What a part (a folder of src/, or a file right in it) may import besides itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  "version.ts": [],
  ...Object.fromEntries(LEAVES.map((leaf) => [leaf, ["core", "version.ts"]])),
  ...Object.fromEntries(ROOT.map((file) => [file, [...BELOW_ROOT, ...ROOT]])),
  "index.ts": BELOW_TOPS,
  ...Object.fromEntries(TOPS.map((top) => [top, BELOW_TOPS])),
  // `xcache ui` serves the dashboard.
  cli: [...BELOW_TOPS, "dashboard"],
};

/** Stands among the sub-folders of a folder for the files right in it. */
const OWN_FILES = ".";

/**
 * The order of the sub-folders of a folder: each may import those of the levels before its own. Sub-folders of one level do
 * not import each other.
 */
const LEVELS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  core: [
    [OWN_FILES],
    ["frame", "address", "glob"],
    ["resilience"],
    ["invalidation"],
    ["near", "loading"],
    ["shared"],
  ],
  backends: [["wire"], ["memory", "kv", "memcached", "disk"]],
  "backends/kv": [["resp"], ["server"], ["commands"], ["cluster", "sentinel"], [OWN_FILES]],
  web: [["message"], ["protocol", "node-http", "fetch-api"], ["engine"], [OWN_FILES]],
  db: [
    ["sql"],
    ["tracking"],
    ["pg", "mysql2", "feed"],
    ["drizzle", "knex", "kysely", "postgres", "prisma", "typeorm"],
    [OWN_FILES],
  ],
  metrics: [[OWN_FILES], ["recording"], ["collectors", "history", "opentelemetry"], ["prometheus", "statsd"]],
};

/** npm packages appear only in leaves: never in the core, never in the files that put the parts together. */
const MAY_USE_PACKAGES = new Set([...LEAVES, ...TOPS]);

const partOf = (path: string): string => path.split("/")[0]!;

/** The file a relative import names, relative to src/. */
const resolveImport = (from: string, specifier: string): string => posix.join(posix.dirname(from), specifier);

export function forbiddenImports(
  files: readonly SourceFile[],
  publishedPackages: readonly string[],
): string[] {
  return files.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier, line }) => {
      const problem = specifier.startsWith(".")
        ? whyNotFile(path, resolveImport(path, specifier))
        : whyNotPackage(path, specifier, publishedPackages);
      return problem === undefined ? [] : [`${path}:${line} imports ${specifier}: ${problem}`];
    }),
  );
}

/** What the build puts together, which bundlers of applications find by this import. */
const BUILT: Readonly<Record<string, string>> = { "dashboard/handler.ts": "../dist/dashboard/page.js" };

function whyNotFile(from: string, to: string): string | undefined {
  if (BUILT[from] === to) return undefined;
  const [part, target] = [partOf(from), partOf(to)];
  const allowed = MAY_IMPORT[part];
  if (allowed === undefined) return `${part} has no rule yet; add one to test/support/architecture.ts`;
  if (part === target) return whyNotInOrder(from, to);
  if (allowed.includes(target)) return undefined;
  return `${part} may import ${["itself", ...allowed].join(", ")}`;
}

/** The rule of the deepest folder that holds both files. */
function whyNotInOrder(from: string, to: string): string | undefined {
  for (const [folder, levels] of Object.entries(LEVELS)) {
    if (!from.startsWith(`${folder}/`) || !to.startsWith(`${folder}/`)) continue;
    const [room, target] = [roomIn(folder, from), roomIn(folder, to)];
    if (room === target) continue;
    for (const each of [room, target])
      if (!levels.flat().includes(each))
        return `${nameOf(folder, each)} has no level in ${folder}/ yet; add it to test/support/architecture.ts`;
    const below = levels.slice(
      0,
      levels.findIndex((level) => level.includes(room)),
    );
    if (below.flat().includes(target)) continue;
    const names = ["itself", ...below.flat().map((each) => nameOf(folder, each))];
    return `${nameOf(folder, room)} may import ${names.join(", ")} within ${folder}/`;
  }
  return undefined;
}

/** The sub-folder of a folder that a file below it is in. */
function roomIn(folder: string, path: string): string {
  const [first = "", ...rest] = path.slice(folder.length + 1).split("/");
  return rest.length === 0 ? OWN_FILES : first;
}

const nameOf = (folder: string, room: string): string =>
  room === OWN_FILES ? `the files of ${folder}/` : `${folder}/${room}`;

function whyNotPackage(from: string, specifier: string, published: readonly string[]): string | undefined {
  if (specifier.startsWith("node:")) return undefined;
  if (builtinModules.includes(specifier)) return `write node:${specifier}`;
  if (!MAY_USE_PACKAGES.has(partOf(from)))
    return `npm packages appear only in ${[...MAY_USE_PACKAGES].join(", ")}`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (published.includes(name)) return undefined;
  return `${name} is neither among the dependencies nor the peerDependencies`;
}

/** Each cycle once, as `a -> b -> a`. Type imports count: a cycle of ideas is one as well. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports
        .filter(({ specifier }) => specifier.startsWith("."))
        .map(({ specifier }) => resolveImport(path, specifier)),
    ]),
  );
  const cycles: string[] = [];
  const finished = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const seenAt = trail.indexOf(path);
    if (seenAt >= 0) cycles.push([...trail.slice(seenAt), path].join(" -> "));
    if (seenAt >= 0 || finished.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    finished.add(path);
  };
  for (const path of targets.keys()) visit(path, []);
  return cycles;
}

export function missingHeaders(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ text }) => !/^(#!.*\n)?\/\/ \S.{10,}\n/.test(text))
    .map(({ path }) => `${path} should start with a line \`// ...\` that says what it is`);
}

export function badNames(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path }) => {
    const words = path.replace(/\.ts$/, "").split("/");
    const shapeless = words.find((word) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(word));
    const empty = words.find((word) => /^(utils?|helpers?|common|misc)$/.test(word));
    if (shapeless !== undefined) return [`${path}: "${shapeless}" is not kebab-case`];
    return empty === undefined ? [] : [`${path}: "${empty}" says nothing; name the idea`];
  });
}

/** The only reader of time, timers and chance. */
const CLOCK = "core/clock.ts";

export function strayClockUses(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path !== CLOCK)
    .flatMap(({ path, clockUses }) =>
      clockUses.map((use) => `${path} uses ${use}; take it from the injected clock`),
    );
}
