// Checks the files of an environment before LMDB opens them: the binding aborts the process on files it cannot open.
import { accessSync, closeSync, constants, openSync, readSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";

/** Offsets and expected values of LMDB's magic number, in machine byte order, and of its file version. */
const MAGIC_AT = 24;
const MAGIC = 0xbeefc0de;
const VERSION_AT = 28;
const VERSION = 2;
/** The two meta pages, at the smallest page size. */
const LEAST_BYTES = 8_192;
/** More than a new store needs: on a full disk, a write to the memory map would kill the process. */
const LEAST_FREE_BYTES = 1024 ** 2;

/** Throws if the environment in the folder cannot be opened. */
export function checkIntegrity(path: string): void {
  const [lock, data] = [join(path, "lock.mdb"), join(path, "data.mdb")];
  const hasLock = requireFile(lock);
  const hasData = requireFile(data);
  if (hasData) requireHeader(data);
  if (!hasLock || !hasData) requireSpace(path);
}

/** Returns whether the file exists and is not empty. */
function requireFile(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return false;
  if (!stat.isFile()) throw new Error(`${file} is not a file`);
  accessSync(file, constants.R_OK | constants.W_OK);
  return stat.size > 0;
}

function requireSpace(path: string): void {
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize < LEAST_FREE_BYTES) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
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
