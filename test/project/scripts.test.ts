// The scripts behind the commands: when dist counts as stale, and how a test report is summarised in one line.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { begin, end, publishedReadme } from "../../scripts/release/published-files.mjs";
import { readReport } from "../../scripts/test/report.mjs";
import { runFolder } from "../support/run-folder.ts";

const folder = mkdtempSync(join(runFolder(), "scripts-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("dist", () => {
  const treeOf = (files: Record<string, number>): string => {
    const root = mkdtempSync(join(folder, "tree-"));
    for (const [path, modified] of Object.entries({
      "tsconfig.json": 1,
      "tsconfig.build.json": 1,
      "scripts/build/bundle.mjs": 1,
      "scripts/build/compact.mjs": 1,
      ...files,
    })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), "");
      utimesSync(join(root, path), modified, modified);
    }
    const exports = {
      ".": { types: "./dist/b.d.ts", default: "./dist/b.js" },
      "./package.json": "./package.json",
    };
    writeFileSync(join(root, "package.json"), JSON.stringify({ exports, bin: {} }));
    return root;
  };
  const built = { "src/b.ts": 5, "src/a/c.ts": 4, ".cache/modules/b.js": 5, ".cache/modules/a/c.js": 5 };

  test.each<[string, Record<string, number>, string | undefined]>([
    ["up to date when each output is as new as its source", { ...built, "dist/b.js": 6 }, undefined],
    ["stale when there is none", { "src/b.ts": 5 }, ".cache/modules/b.js is missing"],
    [
      "stale when a source is newer",
      { ...built, "src/b.ts": 6, "dist/b.js": 6 },
      ".cache/modules/b.js is older than src/b.ts",
    ],
    [
      "stale when a source is gone",
      { ...built, "dist/b.js": 6, ".cache/modules/d.js": 5 },
      ".cache/modules/d.js has no source",
    ],
    [
      "stale when the compiler settings are newer",
      { ...built, "dist/b.js": 6, "tsconfig.json": 6 },
      "is older than tsconfig.json",
    ],
    [
      "stale when modules are put together in another way",
      { ...built, "dist/b.js": 6, "scripts/build/bundle.mjs": 7 },
      "is older than scripts/build/bundle.mjs",
    ],
    ["stale when an entry point is not there", built, "dist/b.js is missing"],
    [
      "stale when the modules were not put together again",
      { ...built, "dist/b.js": 4 },
      "dist/b.js is older than .cache/modules",
    ],
  ])("is %s", (_, files, reason) => {
    if (reason === undefined) expect(whyStale(treeOf(files))).toBeUndefined();
    else expect(whyStale(treeOf(files))).toContain(reason);
  });
});

describe("a test report", () => {
  const reportOf = (report: object): string => {
    const path = join(mkdtempSync(join(folder, "report-")), "report.json");
    writeFileSync(path, JSON.stringify(report));
    return path;
  };
  const fine = {
    numPassedTests: 12,
    numFailedTests: 0,
    numPendingTests: 0,
    numTodoTests: 0,
    success: true,
    testResults: [{ status: "passed", assertionResults: [{ status: "passed" }] }],
  };

  test("is counted as is when all tests pass", () => {
    expect(readReport(reportOf(fine))).toEqual({ passed: 12, failed: 0, skipped: 0 });
  });

  test("counts a file that could not be loaded as a failure", () => {
    const failedTest = { status: "failed", assertionResults: [{ status: "failed" }] };
    const brokenFile = { status: "failed", assertionResults: [] };
    const report = { ...fine, numFailedTests: 1, success: false, testResults: [failedTest, brokenFile] };
    expect(readReport(reportOf(report)).failed).toBe(2);
  });

  test("never shows 0 failed for a run that failed", () => {
    expect(readReport(reportOf({ ...fine, success: false })).failed).toBe(1);
  });

  test("sums up the tests that did not run", () => {
    expect(readReport(reportOf({ ...fine, numPendingTests: 2, numTodoTests: 1 })).skipped).toBe(3);
  });
});

describe("what is published", () => {
  const ROOT = join(import.meta.dirname, "../..");
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    repository: { url: string };
    version: string;
    files: string[];
    scripts: Record<string, string>;
  };
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");

  test("the README links only to files in the package, or to the repository at this version", () => {
    const targets = [
      ...publishedReadme(readme, manifest).matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g),
    ].map(([, link, attribute]) => (link ?? attribute) as string);
    const base = "https://github.com/OWNER/xcache";
    expect(targets.length).toBeGreaterThan(40);
    const ours = targets.filter((target) => target.startsWith(base));
    for (const target of ours) {
      const [, path = ""] = /\/(?:blob|raw)\/v[\d.]+\/([^#]+)/.exec(target) ?? [];
      expect(existsSync(join(ROOT, path)), target).toBe(true);
    }
    expect(ours).toContain(`${base}/blob/v${manifest.version}/docs/guide/cache.md#values`);
    expect(ours).toContain(`${base}/raw/v${manifest.version}/docs/public/logo.svg`);
    const relative = targets.filter((target) => !/^(?:[a-z]+:|#)/.test(target));
    expect(relative).toEqual(["CHANGELOG.md"]);
  });

  test("the manifest has no `prepare`, which npm would warn users of, and packing changes the checkout only for as long", () => {
    const root = mkdtempSync(join(folder, "pack-"));
    const read = (name: string): string => readFileSync(join(root, name), "utf8");
    const own = JSON.stringify({ ...manifest, scripts: { test: "t", prepare: "p" } });
    writeFileSync(join(root, "README.md"), "[a](docs/a.md)");
    writeFileSync(join(root, "package.json"), own);
    begin(root);
    // As after an interrupted run.
    begin(root);
    expect(JSON.parse(read("package.json"))).toMatchObject({
      version: manifest.version,
      scripts: { test: "t" },
    });
    expect(read("package.json")).not.toContain("prepare");
    expect(read("README.md")).toMatch(/^\[a\]\(https:/);
    end(root);
    end(root);
    expect([read("README.md"), read("package.json")]).toEqual(["[a](docs/a.md)", own]);
    expect(manifest.scripts.prepack).toContain("published-files.mjs begin");
    expect(manifest.scripts.postpack).toContain("published-files.mjs end");
  });
});
