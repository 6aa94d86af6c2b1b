// The types as they are published, read by consumers of every kind; those of the adapters beside the libraries they are for.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ADAPTED, ADAPTER_CHECKS, emptyFolder, TYPE_CHECKS } from "../../scripts/test/extras-folder.mjs";
import { runFolder } from "../support/run-folder.ts";
import { SharedSources } from "../support/shared-sources.ts";
import { typeErrorsOf } from "./compiler.ts";
import { addInstalledPackage } from "./installed-package.ts";

const ROOT = join(import.meta.dirname, "../..");
const place = mkdtempSync(join(runFolder(), "types-"));
let bare: string;
let withLibraries: string;
/** Dropped at the end: the declarations of all libraries take much memory. */
let sources: SharedSources | undefined = new SharedSources();

beforeAll(async () => {
  bare = emptyFolder(place);
  withLibraries = emptyFolder(place);
  for (const app of [bare, withLibraries]) await addInstalledPackage(app);
  for (const name of ADAPTED) borrow(name);
});
afterAll(() => {
  sources = undefined;
  rmSync(place, { recursive: true });
});

/** Has the application use a package of this checkout. */
function borrow(name: string): void {
  const link = join(withLibraries, "node_modules", name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), link);
}

test.each(TYPE_CHECKS)("fit consumers under moduleResolution $name", (check) => {
  expect(typeErrorsOf(bare, check, sources!)).toEqual([]);
});

// The others are for `npm run test:extras`: to read the types of all these libraries takes its time.
const { nodenext } = Object.fromEntries(ADAPTER_CHECKS.map((check) => [check.name, check]));

test("of the adapters fit their libraries under moduleResolution nodenext", () => {
  expect(typeErrorsOf(withLibraries, nodenext!, sources!)).toEqual([]);
});
