// The table of tested versions in docs/guide/extras.md is what `npm run test:extras -- --record` saw, for the whole matrix.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { APPS, MANAGERS } from "../../scripts/test/extras-apps.mjs";
import { gapOf, installTable, readRecord, tableIn } from "../../scripts/test/install-matrix.mjs";

const record = readRecord();
const page = readFileSync(join(import.meta.dirname, "../../docs/guide/extras.md"), "utf8");

test("the page has the table of the record", () => {
  expect(tableIn(page)).toBe(installTable(record));
});

test("the record has every application and package manager of the matrix, and no others", () => {
  const tried = Object.entries(record).flatMap(([app, row]) =>
    Object.keys(row).map((name) => `${app}, ${name}`),
  );
  const matrix = APPS.flatMap(({ name: app }) => Object.keys(MANAGERS).map((name) => `${app}, ${name}`));
  expect(tried).toEqual(matrix);
});

test("a version that was tried is one that the application asks for", () => {
  for (const { name, packages } of APPS) {
    const asked = /^.+@~?(\d+(?:\.\d+)?)/.exec(packages[0]!)![1]!;
    for (const outcome of Object.values(record[name]!))
      if (outcome !== null)
        expect(outcome, name).toMatch(new RegExp(`^\\S+ ${asked.replace(".", "\\.")}\\.`));
  }
});

test("an installation that failed has a known reason, and a version that works with npm", () => {
  for (const [app, row] of Object.entries(record)) {
    expect(row.npm, app).toBeTypeOf("string");
    for (const [manager, outcome] of Object.entries(row)) {
      if (outcome !== null) continue;
      expect(gapOf(app, manager), `${app}, ${manager}`).toBeDefined();
    }
  }
});

test("a failure without a known reason is refused", () => {
  expect(() => installTable({ "express 4": { npm: null } })).toThrow("express 4 fails with npm");
});
