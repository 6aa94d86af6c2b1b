// The page about optional packages says of each extra what the command installs.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EXTRAS } from "../../src/cli/doctor/extras.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/guide/extras.md"), "utf8");

/** The cells of the first table: names of extras, then their packages. */
const rows = page
  .slice(page.indexOf("| extra |"), page.indexOf("```text"))
  .split("\n")
  .slice(2)
  .map((line) => line.split("|").map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name)));

test.each(Object.entries(EXTRAS))("%s", (extra, packages) => {
  const row = rows.find(([, names]) => names?.includes(extra));
  // The whole is written as what it has besides the others.
  const others = Object.entries(EXTRAS).flatMap(([name, some]) => (name === "full" ? [] : [...some]));
  const own = extra === "full" ? packages.filter((name) => !(others as string[]).includes(name)) : packages;
  expect(row?.[2]).toEqual(own);
});
