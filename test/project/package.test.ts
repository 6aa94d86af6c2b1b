// What is published: the files, the entry points, the version and the dependencies.
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { manifestProblems } from "../../scripts/release/check-manifest.mjs";
import { type PackedPackage, packedPackage } from "../support/packed-package.ts";

const ROOT = join(import.meta.dirname, "../..");
const run = promisify(execFile);

interface Manifest {
  readonly version: string;
  readonly main: string;
  readonly types: string;
  readonly imports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly resolved?: string;
  readonly hasInstallScript?: boolean;
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(join(ROOT, path), "utf8")) as T;
const manifest = readJson<Manifest>("package.json");
const lock = readJson<{ packages: Readonly<Record<string, LockedPackage>> }>("package-lock.json").packages;

/**
 * The size budget of an installation: a tenth more than its current size. To raise it, change it here and say why. The dashboard
 * and mysql2 are entry points with declarations of their own; feeds can check and follow MariaDB; the beginning of a large value can
 * be read on every store, and statements can be read with the parser of PostgreSQL. The code behind `cachedDependency` is there twice, for Node
 * and for bundlers.
 */
const BUDGET = { packedBytes: 600_000, unpackedBytes: 2_100_000, files: 250, packages: 3 };

const importTargets = Object.values(manifest.imports).flatMap((target) => Object.values(target));

const exportTargets = Object.values(manifest.exports).flatMap((target) =>
  typeof target === "string" ? [target] : Object.values(target),
);

describe("the tarball", () => {
  let packed: string[] = [];
  let tarball: PackedPackage;

  beforeAll(() => {
    tarball = packedPackage();
    packed = tarball.files.map(({ path }) => path);
  });

  test("contains the compiled code, its maps and types and the four standard files, and nothing else", () => {
    const outside = packed.filter((path) => !/^dist\/.+(\.js|\.cjs|\.js\.map|\.d\.ts)$/.test(path));
    expect(outside.sort()).toEqual(["CHANGELOG.md", "LICENSE", "README.md", "package.json"]);
  });

  test("stays within its budget of bytes to download, bytes on disk and files", () => {
    expect(tarball.size).toBeLessThan(BUDGET.packedBytes);
    expect(tarball.unpackedSize).toBeLessThan(BUDGET.unpackedBytes);
    expect(packed.length).toBeLessThan(BUDGET.files);
  });

  test("contains every file that an entry point names", () => {
    const programs = Object.values(manifest.bin ?? {});
    const named = [manifest.main, manifest.types, ...exportTargets, ...importTargets, ...programs];
    for (const target of named) expect(packed).toContain(target.replace(/^\.\//, ""));
  });
});

describe("the entry points", () => {
  test("are listed one by one, without a wildcard", () => {
    for (const target of [...Object.keys(manifest.exports), ...exportTargets])
      expect(target).not.toContain("*");
  });

  test("each come from a source file in the same place", () => {
    const made = ["./dist/bundled.js"];
    for (const target of exportTargets.filter((path) => path.endsWith(".js") && !made.includes(path))) {
      const source = target.replace("./dist/", "src/").replace(/js$/, "ts");
      expect(existsSync(join(ROOT, source)), source).toBe(true);
    }
  });

  const subpaths = Object.keys(manifest.exports).filter((path) => path !== "./package.json");

  test.concurrent.each(subpaths)("%s loads in a bare Node, by import and by require", async (subpath) => {
    const specifier = JSON.stringify(join("xcache", subpath));
    const code = `
      import { createRequire } from "node:module";
      const imported = await import(${specifier});
      const required = createRequire(process.cwd() + "/x.js")(${specifier});
      console.log(Object.keys(imported).length > 0 && required === imported);
      process.exit();`;
    const args = ["--input-type=module", "-e", code];
    expect((await run(process.execPath, args, { cwd: ROOT })).stdout).toBe("true\n");
  });

  test("share one copy of a class, whichever of them exports it, under its own name", () => {
    const code = `
      import * as xcache from "xcache";
      import { HTTPCacheMiddleware } from "xcache/web/fetch";
      import { ChaosBackend } from "xcache/testing";
      const refusalOf = (work) => { try { work(); } catch (error) { return error; } };
      const errors = [
        refusalOf(() => new HTTPCacheMiddleware({ ttl: -1 })),
        refusalOf(() => new xcache.XCache({ backend: new ChaosBackend(new xcache.MemoryBackend()), poolSize: 0 })),
      ];
      const renamed = Object.entries(xcache).filter(
        ([name, value]) => String(value).startsWith("class ") && value.name !== name,
      );
      const isWhole = errors.every((error) => error instanceof xcache.ConfigError && error.name === "ConfigError");
      if (!isWhole || renamed.length > 0) throw new Error(String([...errors, ...renamed]));`;
    expect(() =>
      execFileSync(process.execPath, ["--input-type=module", "-e", code], { cwd: ROOT }),
    ).not.toThrow();
  });

  test("VERSION is the version of package.json", async () => {
    const { VERSION } = await import("../../src/version.ts");
    expect(VERSION).toBe(manifest.version);
    expect(lock[""]?.version).toBe(manifest.version);
  });
});

describe("the dependencies", () => {
  test("needed at run time run no install script", () => {
    const scripted = Object.entries(lock).filter(([, { dev, hasInstallScript }]) => !dev && hasInstallScript);
    expect(scripted.map(([path]) => path)).toEqual([]);
  });

  test("needed at run time are few", () => {
    const along = new Set(Object.keys(manifest.dependencies ?? {}));
    for (const name of along)
      for (const next of Object.keys(lock[`node_modules/${name}`]?.dependencies ?? {})) along.add(next);
    expect(along.size, [...along].join(", ")).toBeLessThanOrEqual(BUDGET.packages);
  });

  test("of the package itself run no install script from the registry", () => {
    // `prepare` runs in a checkout only.
    const onInstall = ["preinstall", "install", "postinstall"];
    expect(Object.keys(manifest.scripts).filter((name) => onInstall.includes(name))).toEqual([]);
  });

  test("are locked as package.json requires", () => {
    expect(lock[""]?.dependencies ?? {}).toEqual(manifest.dependencies ?? {});
    expect(lock[""]?.devDependencies ?? {}).toEqual(manifest.devDependencies ?? {});
  });

  test("are locked by name and digest, not by the address of one registry", () => {
    const addressed = Object.entries(lock).filter(([, { resolved }]) => resolved !== undefined);
    expect(addressed.map(([path]) => path)).toEqual([]);
  });
});

describe("the release check", () => {
  const filled = {
    author: "Ada",
    homepage: "https://example.org",
    bugs: "https://example.org/bugs",
    repository: { type: "git", url: "git+https://example.org/xcache.git" },
  };

  test("refuses placeholder fields of package.json, and missing ones", () => {
    expect(manifestProblems(filled)).toEqual([]);
    expect(manifestProblems({ ...filled, repository: { url: "https://github.com/OWNER/xcache" } })).toEqual([
      "repository still has the placeholder OWNER: fill it in before a release",
    ]);
    expect(manifestProblems({ ...filled, bugs: undefined })).toEqual(["bugs is missing from package.json"]);
  });
});
