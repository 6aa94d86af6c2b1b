// The run-time dependencies, the statements about them, and how a release is made.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { lockProblems, runtimePackages } from "../../scripts/release/lock-file.mjs";
import { billOfMaterials } from "../../scripts/release/sbom.mjs";
import { TOOLS } from "../support/binary.ts";

const ROOT = join(import.meta.dirname, "../..");
const readLock = (path: string) =>
  JSON.parse(readFileSync(join(ROOT, path), "utf8")) as Parameters<typeof lockProblems>[0];
const lock = readLock("package-lock.json");

describe("the lock file", () => {
  const sealed = { integrity: "sha512-x", version: "1.0.0" };
  const lockOf = (packages: (typeof lock)["packages"]) => ({ lockfileVersion: 3, packages });

  test.each(["package-lock.json", "bench/package-lock.json"])("%s is sound", (path) => {
    expect(lockProblems(readLock(path))).toEqual([]);
  });

  test("resolves a platform package beside its parent or further up", () => {
    const packages = {
      "": { dependencies: { a: "1" } },
      "node_modules/a": { ...sealed, optionalDependencies: { b: "1", c: "1" } },
      "node_modules/a/node_modules/b": sealed,
      "node_modules/c": sealed,
    };
    expect(lockProblems(lockOf(packages))).toEqual([]);
  });

  test("resolves from one package to the next as Node does", () => {
    const found = runtimePackages(
      lockOf({
        "": { dependencies: { a: "1" } },
        "node_modules/a": { ...sealed, dependencies: { b: "2", "@s/c": "1" } },
        "node_modules/a/node_modules/b": { ...sealed, optionalDependencies: { d: "1" } },
        "node_modules/@s/c": { ...sealed, dependencies: { a: "1" } },
        "node_modules/b": sealed,
        "node_modules/d": sealed,
      }),
    );
    expect(Object.keys(found).sort()).toEqual([
      "node_modules/@s/c",
      "node_modules/a",
      "node_modules/a/node_modules/b",
      "node_modules/d",
    ]);
  });

  test.each([
    ["a script of a dependency", { hasInstallScript: true }, ["a runs a script when it is installed"]],
    [
      "the address of a registry",
      { resolved: "https://registry.example/a.tgz" },
      ["a is locked to the address of one registry"],
    ],
    ["a weak digest", { integrity: "sha1-x" }, ["a has no SHA-512 digest"]],
    [
      "a package of another platform that has no entry",
      { optionalDependencies: { "@a/darwin-arm64": "1.0.0" } },
      ["@a/darwin-arm64@1.0.0 of node_modules/a has no entry: npm ci will refuse the lock file"],
    ],
    [
      "a field that npm 10 removes",
      { libc: ["musl"] },
      ["a names its libc, which npm 10 removes and npm 11 does not miss: delete the field"],
    ],
  ])("does not pass with %s", (_, flaw, problems) => {
    const packages = { "": { dependencies: { a: "1" } }, "node_modules/a": { ...sealed, ...flaw } };
    expect(lockProblems(lockOf(packages))).toEqual(problems);
  });

  test("fails without any dependency, and allows install scripts of development tools", () => {
    const packages = {
      "": { dependencies: { a: "1" } },
      "node_modules/tool": { ...sealed, dev: true, hasInstallScript: true },
    };
    expect(lockProblems(lockOf(packages))).toEqual(["a is a dependency and not in the lock file"]);
  });
});

test("the bill of materials lists the run-time dependencies, with licence and digest, and nothing else", () => {
  interface Component {
    readonly name: string;
    readonly version: string;
    readonly purl: string;
    readonly licenses: readonly unknown[];
    readonly hashes: readonly { readonly alg: string }[];
  }
  const bill = JSON.parse(billOfMaterials()) as {
    readonly bomFormat: string;
    readonly metadata: { readonly component: Component };
    readonly components: readonly Component[];
  };
  expect([bill.bomFormat, bill.metadata.component.name]).toEqual(["CycloneDX", "xcache"]);
  const locked = Object.entries(runtimePackages(lock)).map(
    ([place, { version }]) => `pkg:npm/${place.replace("node_modules/", "")}@${version}`,
  );
  expect(bill.components.map(({ purl }) => purl).sort()).toEqual(locked.sort());
  for (const { name, licenses, hashes } of bill.components) {
    expect(licenses, name).toHaveLength(1);
    expect(
      hashes.map(({ alg }) => alg),
      name,
    ).toContain("SHA-512");
  }
});

describe("the workflows", () => {
  interface Step {
    readonly uses?: string;
    readonly run?: string;
  }
  type Env = Readonly<Record<string, string>>;
  interface Job {
    readonly env?: Env;
    readonly "timeout-minutes"?: number;
    readonly needs?: string;
    readonly permissions?: Readonly<Record<string, string>>;
    readonly steps: readonly Step[];
    readonly strategy?: { readonly matrix: { readonly node: readonly number[] } };
  }
  interface Workflow {
    readonly on: unknown;
    readonly env?: Env;
    readonly permissions: Readonly<Record<string, string>>;
    readonly jobs: Readonly<Record<string, Job>>;
  }
  const folder = join(ROOT, ".github/workflows");
  const names = readdirSync(folder);
  const read = (name: string): Workflow => parse(readFileSync(join(folder, name), "utf8")) as Workflow;
  const commands = ({ steps }: Job): readonly string[] => steps.flatMap(({ run }) => run ?? []);

  test.each(names)(
    "%s has read-only permissions unless a job needs more, has a time limit, and pins its actions",
    (name) => {
      const { permissions, jobs } = read(name);
      expect(permissions).toEqual({ contents: "read" });
      for (const job of Object.values(jobs)) {
        expect(job["timeout-minutes"]).toBeLessThanOrEqual(60);
        for (const { uses } of job.steps)
          if (uses !== undefined) expect(uses).toMatch(/^[\w./-]+@[0-9a-f]{40}$/);
      }
    },
  );

  test.each(names)("%s runs scripts that exist", (name) => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    const used = Object.values(read(name).jobs).flatMap(commands).join("\n");
    for (const [, script = ""] of used.matchAll(/npm run ([\w:-]+)/g))
      expect(scripts).toHaveProperty([script]);
  });

  test("run everything on Node 20 and the tests on every other release", () => {
    const { check, matrix } = read("ci.yml").jobs;
    expect(commands(check!)).toContain(".ci/run");
    expect(matrix?.strategy?.matrix.node).toEqual([22, 24, 26]);
    expect(commands(matrix!).join()).toContain("npm run test:matrix");
  });

  test("build the site and check it in a browser", () => {
    const { docs } = read("ci.yml").jobs;
    expect(commands(docs!).slice(-2)).toEqual(["npm run docs", "npm run test:site"]);
  });

  // Without root rights, the tests stop at the first program that is missing.
  test.each(names)("%s provides every program that the tests need", (name) => {
    const { env, jobs } = read(name);
    for (const [title, job] of Object.entries(jobs)) {
      const lines = commands(job).join("\n");
      const isTesting = /\.ci\/run|npm run test:matrix/.test(lines);
      const needed = TOOLS.filter(({ name: tool }) =>
        isTesting ? true : lines.includes("npm run test:site") && tool === "chromium",
      );
      const set = { ...env, ...job.env };
      const packages = lines
        .replaceAll(/\$(\w+)/g, (_, variable: string) => set[variable] ?? "")
        .split(/\s+/);
      const missing = needed.filter(
        ({ variable, debianPackage }) => set[variable] === undefined && !packages.includes(debianPackage),
      );
      expect(
        missing.map(({ name: tool }) => tool),
        title,
      ).toEqual([]);
    }
  });

  test("publish with provenance, after all checks, and only released versions", () => {
    const { on, jobs } = read("publish.yml");
    expect(on).toEqual({ release: { types: ["published"] } });
    const { check, publish } = jobs;
    expect(publish?.needs).toBe("check");
    expect(commands(publish!).at(-1)).toBe(
      "npm publish xcache-*.tgz --ignore-scripts --provenance --access public",
    );
    const checks = commands(check!);
    for (const name of [
      ".ci/run",
      "npm run check:supply-chain -- --strict",
      "npm run docs",
      "npm run test:extras",
    ])
      expect(checks).toContain(name);
    expect(checks.join()).toContain("github.com/$GITHUB_REPOSITORY");
    // Jobs that install and run third-party code cannot sign, and the signing job runs none.
    expect(check?.permissions).toBeUndefined();
    expect(publish?.permissions).toEqual({ contents: "write", "id-token": "write" });
    expect(commands(publish!).join()).not.toMatch(/npm (ci|install|run)/);
    const secrets = readFileSync(join(folder, "publish.yml"), "utf8").match(/secrets\./);
    expect(secrets).toBeNull();
  });
});
