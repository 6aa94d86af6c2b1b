// The index of the examples: it names every one, and every README says how its example is run.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { linksOf } from "../support/markdown.ts";
import { EXAMPLES } from "./example.ts";

const folders = readdirSync(EXAMPLES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const apps = folders.filter((name) => existsSync(join(EXAMPLES, name, "app.mjs")));

test("every folder is in the index, and nothing else", () => {
  const index = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  const listed = linksOf(index).map(({ target }) => target.split("/")[0]);
  expect(listed.sort()).toEqual([...folders].sort());
});

test.each(apps)("the README of %s has about ten lines, and the command that runs it", (name) => {
  const readme = readFileSync(join(EXAMPLES, name, "README.md"), "utf8");
  expect(readme).toContain(`node examples/${name}/app.mjs`);
  expect(readme.split("\n").length).toBeLessThanOrEqual(16);
});
