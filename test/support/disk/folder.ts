// A folder for the stores of one test file, removed when its tests are over.
// The store is loaded with it: to compile it within the deadline of the first call would take too long on a busy machine.
import "../../../src/backends/disk/records.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { runFolder } from "../run-folder.ts";

/** Gives a path that nothing lies at yet, each time another one. */
export function freshFolders(): () => string {
  const root = mkdtempSync(join(runFolder(), "disk-"));
  let next = 0;
  afterAll(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  return () => join(root, `store-${next++}`);
}
