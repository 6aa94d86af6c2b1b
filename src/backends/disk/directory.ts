// Prepares the folder of a store: selects the environment of this boot and removes those of earlier boots.
import { accessSync, constants, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { folderError, openError } from "./disk-error.ts";
import { checkIntegrity } from "./integrity.ts";
import { isMarkerPath } from "./lock/marker.ts";
import { readBootId } from "./lock/marker-owner.ts";
import type { Durability } from "./options.ts";

/** Accessible only to the user whose processes share the store. */
const FOLDER_MODE = 0o700;
const OF_DISK = "disk";
const OF_BOOT = "boot-";
/** The files of an LMDB environment. */
const OWN_FILES = ["data.mdb", "lock.mdb"];

export interface StoreFolder {
  /** The folder of the environment. */
  readonly path: string;
  readonly isSynced: boolean;
}

/**
 * Creates the folder if needed. A power cut may damage a store that is not flushed at every commit, so such a store is
 * valid for one boot only: after the next boot a new one is created, and no process opens a store that may be damaged or
 * may lack the last invalidations.
 */
export function prepareFolder(directory: string, durability: Durability, bootId = readBootId()): StoreFolder {
  try {
    const isSynced = durability === "disk" || bootId === undefined;
    const name = isSynced ? OF_DISK : OF_BOOT + bootId;
    mkdirSync(directory, { recursive: true, mode: FOLDER_MODE });
    const names = readdirSync(directory);
    refuseForeign(directory, names);
    refuseOtherLevel(directory, names, name, durability, bootId);
    mkdirSync(join(directory, name), { recursive: true, mode: FOLDER_MODE });
    accessSync(join(directory, name), constants.W_OK | constants.X_OK);
    checkIntegrity(join(directory, name));
    for (const former of names) if (former !== name) removeFormer(join(directory, former), former);
    return { path: realpathSync(join(directory, name)), isSynced };
  } catch (error) {
    throw openError(error, directory);
  }
}

/** Removes it only if it is a store and nothing else: another application's folder may have such a name. */
function removeFormer(path: string, name: string): void {
  if (!name.startsWith(OF_BOOT) || !lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    const files = readdirSync(path, { recursive: true, encoding: "utf8" });
    const isStore = files.every((file) => OWN_FILES.includes(file) || isMarkerPath(file));
    if (isStore) rmSync(path, { recursive: true, force: true });
  } catch (error) {
    // Another process is removing it too.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function refuseForeign(directory: string, names: readonly string[]): void {
  const foreign = names.find((name) => OWN_FILES.includes(name));
  if (foreign === undefined) return;
  throw folderError(directory, `${foreign} in it is an LMDB environment of another application`, {
    hint: "Use a separate folder for the cache.",
  });
}

function refuseOtherLevel(
  directory: string,
  names: readonly string[],
  own: string,
  durability: Durability,
  bootId: string | undefined,
): void {
  const opposite = own === OF_DISK ? OF_BOOT + bootId : OF_DISK;
  const other = names.find((name) => name === opposite);
  if (other === undefined) return;
  const level = other === OF_DISK ? "disk" : "process";
  throw folderError(
    directory,
    `it holds a store with durability "${level}", but "${durability}" is configured`,
    {
      hint: `Configure durability "${level}" in every process that uses it, use another folder, or stop them all and remove ${other} in it.`,
    },
  );
}
