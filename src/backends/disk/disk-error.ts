// Failures of the disk and of LMDB as typed errors that say what to do.
import { statfsSync } from "node:fs";
import { ConnectionError, type ErrorDetails, OperationTimeoutError, XCacheError } from "../../core/errors.ts";

/** What lmdb and Node call a write that found no room; LMDB takes a write that was cut short for an I/O error. */
const NO_ROOM = new Set<unknown>(["ENOSPC", "EDQUOT", "EFBIG", "EIO", 28, 122, 27, 5, -30792]);
const LITTLE_BYTES = 16 * 1024 ** 2;

/**
 * Why changes could not be committed. As if the store could not be reached, never as if it had refused: an invalidation
 * that found no room is kept until there is some.
 */
export function commitError(thrown: unknown, path: string): XCacheError {
  if (thrown instanceof XCacheError) return thrown;
  const { code, message } = thrown as Error & { code?: unknown };
  if (!NO_ROOM.has(code)) {
    return new ConnectionError(`the store in ${path} could not commit: ${message}`, {
      cause: thrown,
    });
  }
  const free = freeBytes(path);
  const state = free === undefined ? "" : `; ${free} bytes are free there`;
  return new ConnectionError(`the disk did not take what was written to ${path}: ${message}${state}`, {
    cause: thrown,
    hint:
      free === undefined || free < LITTLE_BYTES
        ? "Free some space or set a lower max_bytes; what was stored before is intact, and reads go on."
        : "Check the disk, its quota and the file size limit of the process; what was stored before is intact.",
  });
}

/** The binding says only that a commit failed, and has the reason in a promise. */
export async function causeOf(error: unknown): Promise<unknown> {
  const { commitError: reason } = error as { commitError?: Promise<never> };
  return reason === undefined ? error : reason.catch((cause: unknown) => cause);
}

/** Why a change was given up. */
export function lateError(): OperationTimeoutError {
  return new OperationTimeoutError("the store on disk did not commit the change within operation_timeout", {
    hint: "A process on this store may be stopped, or hang, while it writes or opens it: let it go on, or end it. Or more is written at once than the disk takes in that time. Reads go on.",
  });
}

/** Why a store could not be opened: these processes kept everybody from it. */
export function busyError(directory: string, pids: readonly number[]): ConnectionError {
  const who = pids.length === 1 ? `process ${pids[0]} has` : `processes ${pids.join(", ")} have`;
  return new ConnectionError(
    `the store in ${directory} could not be opened within connect_timeout: ${who} been committing to it, or closing it, all the while`,
    { hint: "One that is stopped, hangs or is too busy to go on keeps others out: let it go on, or end it." },
  );
}

/** Why nothing is changed any more, after a failure that is fatal. */
export function noMoreChanges(cause: Error): ConnectionError {
  return new ConnectionError(`the store on disk takes no more changes: ${cause.message}`, {
    cause,
    hint: "Restart the process; if that does not help, stop all processes that use the folder and remove it.",
  });
}

function freeBytes(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** A failure after which LMDB takes no more changes, and the binding would wait for ever for its own lock. */
export function isFatal(thrown: unknown): boolean {
  const { code } = thrown as { code?: unknown };
  return thrown instanceof Error && !(thrown instanceof XCacheError) && !NO_ROOM.has(code);
}

const FOLDER_PROBLEMS: Readonly<Record<string, readonly [problem: string, hint: string]>> = {
  EACCES: ["this process may not write there", "Give its user the folder, or use another one."],
  EPERM: ["this process may not write there", "Give its user the folder, or use another one."],
  EROFS: ["it is on a file system that is mounted read-only", "Use a folder that can be written."],
  ENOTDIR: ["a part of the path is a file", "Give the path of a folder; it is made if it does not exist."],
  EEXIST: ["it is a file", "Give the path of a folder; it is made if it does not exist."],
  ENOSPC: ["the disk is full", "Free some space, or use a folder on another disk."],
  ENAMETOOLONG: ["its path is too long", "Use a shorter path."],
  ELOOP: ["its path is a circle of links", "Use a folder."],
  READERS_FULL: [
    "as many threads as it takes have it open",
    "End some of them; a process needs one place for each thread that opens it.",
  ],
};

const ERRNO: Readonly<Record<number, string>> = {
  1: "EPERM",
  13: "EACCES",
  30: "EROFS",
  20: "ENOTDIR",
  28: "ENOSPC",
  [-30790]: "READERS_FULL",
};

/** Why a store could not be opened in a folder. */
export function openError(thrown: unknown, directory: string): XCacheError {
  if (thrown instanceof XCacheError) return thrown;
  const { code, message } = thrown as Error & { code?: unknown };
  const name = typeof code === "number" ? ERRNO[code] : String(code);
  const known = name === undefined ? undefined : FOLDER_PROBLEMS[name];
  if (known !== undefined) return folderError(directory, known[0], { hint: known[1], cause: thrown });
  return folderError(directory, message, {
    cause: thrown,
    hint: "If the file is damaged, stop all processes that use the folder and remove it: the store is a cache.",
  });
}

export function folderError(directory: string, problem: string, details: ErrorDetails): ConnectionError {
  return new ConnectionError(`the folder ${directory} cannot hold a store: ${problem}`, details);
}
