// The index of the examples lists every one, and every README says how to run its example.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { linksOf } from "../support/markdown.ts";
import { EXAMPLES } from "./example.ts";

const folders = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
  .map(({ name }) => name);
const apps = folders.filter((name) => existsSync(join(EXAMPLES, name, "app.mjs")));

test("the index lists every folder and nothing else", () => {
  const index = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  const listed = linksOf(index).map(({ target }) => target.split("/")[0]);
  expect(listed.sort()).toEqual([...folders].sort());
});

test.each(apps)("the README of %s has about ten lines, and the command that runs it", (name) => {
  const readme = readFileSync(join(EXAMPLES, name, "README.md"), "utf8");
  expect(readme).toMatch(/`npm install && (\S+ )?npm start`/);
  expect(readme.split("\n").length).toBeLessThanOrEqual(16);
});

interface Manifest {
  readonly name: string;
  readonly private: boolean;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifestOf = (file: string): Manifest => JSON.parse(readFileSync(file, "utf8"));

test.each(apps)("the package.json of %s lists what it imports, in the versions tested here", (name) => {
  const folder = join(EXAMPLES, name);
  const { dependencies, scripts, private: isPrivate } = manifestOf(join(folder, "package.json"));
  const { devDependencies } = JSON.parse(readFileSync(join(EXAMPLES, "../package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };
  const sources = readdirSync(folder).filter((file) => file.endsWith(".mjs"));
  const imported = sources
    .flatMap((file) => [...readFileSync(join(folder, file), "utf8").matchAll(/ from "([^"]+)"/g)])
    .map(([, specifier]) => specifier!)
    .filter((specifier) => !/^(node:|\.)/.test(specifier))
    .map((specifier) => /^(@[^/]+\/)?[^/]+/.exec(specifier)![0]);
  expect({ isPrivate, start: scripts.start }).toEqual({ isPrivate: true, start: "node app.mjs" });
  expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(imported));
  for (const [dependency, range] of Object.entries(dependencies))
    expect(range, dependency).toBe(dependency === "xcache" ? "file:../.." : devDependencies[dependency]);
});

test("an example that needs a server has a compose file that starts it", () => {
  const index = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  const rows = [...index.matchAll(/^\|[^|]+\| \[(\w+)\][^|]*\| (.*?) \|$/gm)];
  const needing = rows.filter(([, , needs]) => needs !== "nothing").map(([, name]) => name!);
  expect(needing.length).toBeGreaterThan(5);
  for (const name of needing) {
    const file = parse(readFileSync(join(EXAMPLES, name, "compose.yaml"), "utf8"), { merge: true });
    expect(Object.keys(file.services), name).not.toEqual([]);
  }
});
