// Looks at the files of an environment before LMDB does: the binding ends the process where it cannot open one.
import { accessSync, closeSync, constants, openSync, readSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";

/** Where LMDB says what a file is, and what it says there: a number in the order of the machine, and a version. */
const MAGIC_AT = 24;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 28;
const VERSION = 2;
/** Two pages of the smallest size, each of which says how the rest is to be read. */
const LEAST_BYTES = 8_192;
/** A new store begins with less; where a file is mapped into memory, a disk that fills up would end the process. */
const ROOM_TO_BEGIN = 1024 ** 2;

/** Throws an error that says why the environment in a folder cannot be opened. */
export function checkIntegrity(path: string): void {
  const [lock, data] = [join(path, "lock.mdb"), join(path, "data.mdb")];
  const hasLock = requireFile(lock);
  const hasData = requireFile(data);
  if (hasData) requireHeader(data);
  if (!hasLock || !hasData) requireRoom(path);
}

/** Returns whether there is something in it. */
function requireFile(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (!stat.isFile()) throw new Error(`${file} is not a file`);
  accessSync(file, constants.R_OK | constants.W_OK);
  return stat.size > 0;
}

function requireRoom(path: string): void {
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize < ROOM_TO_BEGIN) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
}

function requireHeader(file: string): void {
  const head = Buffer.alloc(VERSION_AT + 4);
  const opened = openSync(file, "r");
  try {
    readSync(opened, head, 0, head.length, 0);
  } finally {
    closeSync(opened);
  }
  if (statSync(file).size < LEAST_BYTES || head.readUInt32LE(MAGIC_AT) !== MAGIC) {
    throw new Error(`${file} is damaged`);
  }
  const version = head.readUInt16LE(VERSION_AT);
  if (version !== VERSION) throw new Error(`${file} was written by another version of LMDB (${version})`);
}
