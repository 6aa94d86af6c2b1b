// The published package with and without PostgreSQL's own parser beside it.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { emptyFolder, run } from "../../scripts/test/extras-folder.mjs";
import { runFolder } from "../support/run-folder.ts";
import { addInstalledPackage } from "./installed-package.ts";

const ROOT = join(import.meta.dirname, "../..");
const APPS = join(import.meta.dirname, "apps");
const place = mkdtempSync(join(runFolder(), "parser-"));
let app: string;

beforeAll(async () => {
  app = emptyFolder(place);
  await addInstalledPackage(app);
  borrow("pg");
  for (const name of ["pg.mjs", "check.mjs"]) copyFileSync(join(APPS, name), join(app, name));
});
afterAll(() => rmSync(place, { recursive: true }));

/** Has the application use a package of this checkout. */
function borrow(name: string): void {
  const modules = join(app, "node_modules");
  mkdirSync(modules, { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
}

test("explain says what the parser has decided, once it is installed next to pg", async () => {
  expect(await run(app, ["pg.mjs"])).toMatch(/^pg 8\.[\d.]+\n$/);
  borrow("libpg-query");
  expect(await run(app, ["pg.mjs"])).toMatch(/^pg 8\.[\d.]+, libpg-query 18\.[\d.]+\n$/);
});
