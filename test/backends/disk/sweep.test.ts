// The sweep of a store whose file is damaged while it is in use.
import { closeSync, fstatSync, openSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ManualClock } from "../../../src/testing/index.ts";
import { freshFolders } from "../../support/disk/folder.ts";
import { opened } from "../../support/disk/opened.ts";
import { item } from "../../support/opened.ts";

const freshFolder = freshFolders();
/** The two pages that say where the trees begin. */
const META_BYTES = 2 * 4_096;

/** Overwrites the trees with zeros. */
function damage(directory: string): void {
  const file = openSync(join(directory, readdirSync(directory)[0] as string, "data.mdb"), "r+");
  writeSync(file, Buffer.alloc(fstatSync(file).size - META_BYTES), 0, undefined, META_BYTES);
  closeSync(file);
}

test("fails the calls that read it, and not the process", async () => {
  const directory = freshFolder();
  const clock = new ManualClock();
  const backend = opened({ directory }, { clock });
  await backend.write(item("key"));
  damage(directory);
  await expect(backend.read("key")).rejects.toThrow("MDB_CORRUPTED");
  // The sweep runs in a timer, where nobody catches what it throws.
  await clock.advance(10_000);
  await expect(backend.read("key")).rejects.toThrow("MDB_CORRUPTED");
  await clock.advance(10_000);
  await backend.disconnect();
});
