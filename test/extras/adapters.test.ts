// The types of the adapters as they are published, read beside the libraries they are for, by ES modules and by CommonJS ones.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import {
  ADAPTED,
  ADAPTER_CHECKS,
  emptyFolder,
  install,
  pack,
  run,
  runtimeDependencies,
} from "../../scripts/test/extras-folder.mjs";
import { runFolder } from "../support/run-folder.ts";
import { typeErrorsOf } from "./compiler.ts";

const ROOT = join(import.meta.dirname, "../..");
const APPS = join(import.meta.dirname, "apps");
const place = mkdtempSync(join(runFolder(), "adapters-"));
let app: string;

beforeAll(async () => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  app = emptyFolder(place);
  await install(app, await pack(place, [ROOT, ...runtimeDependencies()]), { offline: true });
  for (const name of ADAPTED) borrow(name);
});
afterAll(() => rmSync(place, { recursive: true }));

/** Has the application use a package of this checkout. */
function borrow(name: string): void {
  const link = join(app, "node_modules", name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), link);
}

test("explain says what PostgreSQL's own parser has decided, once it is installed next to pg", async () => {
  for (const name of ["pg.mjs", "check.mjs"]) copyFileSync(join(APPS, name), join(app, name));
  expect(await run(app, ["pg.mjs"])).toMatch(/^pg 8\.[\d.]+\n$/);
  borrow("libpg-query");
  expect(await run(app, ["pg.mjs"])).toMatch(/^pg 8\.[\d.]+, libpg-query 18\.[\d.]+\n$/);
});

// The others are for `npm run test:extras`: to read the types of so many libraries takes its time.
const { nodenext } = Object.fromEntries(ADAPTER_CHECKS.map((check) => [check.name, check]));

test("fit their libraries under moduleResolution nodenext", () => {
  expect(typeErrorsOf(app, nodenext!)).toEqual([]);
});
