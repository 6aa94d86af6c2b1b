// The code behind `cachedDependency`: loaded by its first call on Node, part of a bundle, and never there twice.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "vite";
import { beforeAll, describe, expect, it } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { runFolder } from "../support/run-folder.ts";

const ROOT = join(import.meta.dirname, "../..");
const DIST = join(ROOT, "dist");
const PART = "chunk/cached-dependency";

interface Manifest {
  readonly imports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
const textOf = (path: string): string => readFileSync(join(DIST, path), "utf8");

/** An application that has the package installed. */
function application(): string {
  const folder = mkdtempSync(join(runFolder(), "on-demand-"));
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules/xcache"), "dir");
  writeFileSync(
    join(folder, "app.mjs"),
    `import { cachedDependency, ConfigError, explain, XCache } from "xcache";
    import { pgSessions } from "xcache/db/pg";
    const cache = new XCache({ kvUrl: "memory://" });
    const adapter = { name: "own", recognises: () => true, dialect: () => "postgres", wrap: () => ({}) };
    const options = { cache, tableName: "users" };
    const session = cachedDependency(() => ({}), { ...options, adapter })();
    let refusal;
    try {
      cachedDependency(() => 1, options)();
    } catch (error) {
      refusal = error;
    }
    explain(session, "SELECT name FROM users").then(({ isCached }) => {
      const isKnown = refusal instanceof ConfigError;
      console.log(JSON.stringify({ isCached, isKnown, adapter: pgSessions.name }));
      process.exit();
    });`,
  );
  return folder;
}

const WORKS = { isCached: true, isKnown: true, adapter: "node-postgres" };
const said = (path: string): unknown =>
  JSON.parse(execFileSync(process.execPath, [path], { encoding: "utf8" }));

beforeAll(() => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
});

describe("on Node", () => {
  it("is loaded by the first call, without a warning", () => {
    const program = `
      import { createRequire } from "node:module";
      import { cachedDependency } from ${JSON.stringify(pathToFileURL(join(DIST, "index.js")).href)};
      const { cache } = createRequire(import.meta.url);
      const isLoaded = () => Object.keys(cache).some((path) => path.endsWith("cached-dependency.cjs"));
      const before = isLoaded();
      cachedDependency(() => {}, { tableName: "users" });
      console.log(before, isLoaded());`;
    const args = ["--input-type=module", "-e", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect({ stdout, stderr }).toEqual({ stdout: "false true\n", stderr: "" });
  });

  it("works, and together with xcache/db/*", () => {
    expect(said(join(application(), "app.mjs"))).toEqual(WORKS);
  });

  it("is one object for all who use it", async () => {
    const { cachedDependencyCode } = await import(pathToFileURL(join(DIST, "chunk/cache.js")).href);
    const part = await import(pathToFileURL(join(DIST, `${PART}-node.js`)).href);
    expect(Object.keys(part).length).toBeGreaterThan(20);
    expect({ ...part }).toEqual(cachedDependencyCode());
    for (const [name, value] of Object.entries(part)) expect(value).toBe(cachedDependencyCode()[name]);
  });

  it("is found by what collects the files of a deployment", async () => {
    const path: string = "next/dist/compiled/@vercel/nft/index.js";
    const { nodeFileTrace } = createRequire(import.meta.url)(path);
    const { fileList } = await nodeFileTrace([join(DIST, "index.js")], { base: ROOT });
    expect([...fileList]).toContain(`dist/${PART}.cjs`);
  }, 60_000);

  it("says what to do where its file is missing", () => {
    const folder = mkdtempSync(join(runFolder(), "on-demand-"));
    cpSync(DIST, join(folder, "dist"), { recursive: true, filter: (path) => !path.endsWith(".cjs") });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const program = `
      import { cachedDependency, ConfigError } from ${JSON.stringify(pathToFileURL(join(folder, "dist/index.js")).href)};
      try {
        cachedDependency(() => {}, { tableName: "users" });
      } catch (error) {
        console.log(error instanceof ConfigError, error.code, error.hint, error.cause.code);
      }`;
    const args = ["--input-type=module", "-e", program];
    expect(execFileSync(process.execPath, args, { encoding: "utf8" })).toMatch(
      /^true CODE_MISSING Let the bundler .+ `module`, .+ MODULE_NOT_FOUND\n$/,
    );
  });
});

describe("the files for Node and for bundlers", () => {
  it("are chosen by the same conditions", () => {
    const [own, ...others] = Object.values(manifest.imports).map((targets) => Object.keys(targets));
    expect(others).toEqual([]);
    expect(Object.keys(manifest.exports["."]!)).toEqual(["types", ...own!]);
    for (const targets of [manifest.imports["#cached-dependency"]!, manifest.exports["."]!]) {
      const { types: _, node, default: standard, ...bundlers } = targets;
      expect(node).not.toBe(standard);
      expect(new Set(Object.values(bundlers))).toEqual(new Set([standard]));
    }
  });

  it("export the same", async () => {
    const [node, bundled] = await Promise.all(
      ["index.js", "bundled.js"].map((path) => import(pathToFileURL(join(DIST, path)).href)),
    );
    expect(Object.keys(node)).toEqual(Object.keys(bundled));
    const { cachedDependency: _, ...shared } = node;
    for (const [name, value] of Object.entries(shared)) expect(value, name).toBe(bundled[name]);
  });

  it("have the same lines, so that one map holds for both", () => {
    const [script, module] = [`${PART}.cjs`, `${PART}.js`].map((path) => textOf(path).split("\n"));
    expect(script!.length).toBe(module!.length);
    const different = module!.flatMap((line, index) => (line === script![index] ? [] : [index]));
    // The import and the exports, which begin in the last line of code.
    const exports = module!.findIndex((line) => /[;}]export\{/.test(line));
    expect(exports).toBeGreaterThan(1_000);
    expect(different.filter((index) => index > 1 && index < exports)).toEqual([]);
    expect(script!.at(-2)).toBe("//# sourceMappingURL=cached-dependency.js.map");
  });
});

describe("in a bundle", () => {
  const external = [...Object.keys(manifest.peerDependencies), ...Object.keys(manifest.dependencies)];
  /** How often the code is there, by one of its messages. */
  const copiesIn = (path: string): number =>
    readFileSync(path, "utf8").split("a synchronous SQLite connection, which").length - 1;

  it.each([
    ["an ES module", "esm", undefined],
    ["CommonJS", "cjs", undefined],
    ["an ES module, without the condition for bundlers", "esm", ["production"]],
    ["CommonJS, without the condition for bundlers", "cjs", ["production"]],
  ])(
    "of esbuild, %s, it works and is there once",
    async (_, format, conditions) => {
      const folder = application();
      const vite = createRequire(import.meta.url).resolve("vite");
      const outfile = join(folder, format === "esm" ? "bundle.mjs" : "bundle.cjs");
      await createRequire(vite)("esbuild").build({
        ...{ absWorkingDir: folder, entryPoints: ["app.mjs"], outfile, external, format },
        ...{ bundle: true, platform: "node", logLevel: "silent" },
        ...(conditions === undefined ? {} : { conditions }),
      });
      expect(said(outfile)).toEqual(WORKS);
      expect(copiesIn(outfile)).toBe(1);
    },
    60_000,
  );

  it.each(["es", "cjs"] as const)(
    "of Vite, as %s, it works and is there once",
    async (format) => {
      const root = application();
      const entryFileNames = format === "es" ? "bundle.mjs" : "bundle.cjs";
      await build({
        ...{ root, configFile: false, logLevel: "silent" },
        ssr: { noExternal: true, external },
        build: { ssr: "app.mjs", outDir: "out", rollupOptions: { output: { format, entryFileNames } } },
      });
      const bundle = join(root, "out", entryFileNames);
      expect(said(bundle)).toEqual(WORKS);
      expect(copiesIn(bundle)).toBe(1);
    },
    60_000,
  );
});
