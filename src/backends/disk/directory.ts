// The folder of a store: which environment in it is this boot's, whether it is ours, and what is left of former boots.
import { accessSync, constants, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { folderError, openError } from "./disk-error.ts";
import { checkIntegrity } from "./integrity.ts";
import { readBootId } from "./lock/boot-id.ts";
import { isMarkerPath } from "./lock/marker.ts";
import type { Durability } from "./options.ts";

/** Only for the user whose processes share the store. */
const FOLDER_MODE = 0o700;
const OF_DISK = "disk";
const OF_BOOT = "boot-";
/** Of an environment of LMDB. */
const OWN_FILES = ["data.mdb", "lock.mdb"];

export interface StoreFolder {
  /** The folder of the environment. */
  readonly path: string;
  readonly isSynced: boolean;
}

/**
 * Makes the folder if need be. What is not flushed at every commit may be damaged by a power cut, so such a store is one
 * boot's only: the next one begins another, and nobody opens what may be damaged or lacks its last invalidations.
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

/** Only what is a store and nothing else: a folder of somebody else may have such a name. */
function removeFormer(path: string, name: string): void {
  if (!name.startsWith(OF_BOOT) || !lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  try {
    const files = readdirSync(path, { recursive: true, encoding: "utf8" });
    const isStore = files.every((file) => OWN_FILES.includes(file) || isMarkerPath(file));
    if (isStore) rmSync(path, { recursive: true, force: true });
  } catch (error) {
    // Another process removes it as well.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

function refuseForeign(directory: string, names: readonly string[]): void {
  const foreign = names.find((name) => OWN_FILES.includes(name));
  if (foreign === undefined) return;
  throw folderError(directory, `${foreign} in it is an LMDB environment of something else`, {
    hint: "Use a folder of its own for the cache.",
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
  throw folderError(directory, `it holds one with durability "${level}", and "${durability}" was asked for`, {
    hint: `Give every process on it durability "${level}", use another folder, or stop all of them and remove ${other} in it.`,
  });
}
