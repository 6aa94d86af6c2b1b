// A folder for the stores of one test file, removed when its tests are over.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll } from "vitest";
import { runFolder } from "../../support/run-folder.ts";

/** Gives a path that nothing lies at yet, each time another one. */
export function freshFolders(): () => string {
  const root = mkdtempSync(join(runFolder(), "disk-"));
  let next = 0;
  afterAll(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }));
  return () => join(root, `store-${next++}`);
}
