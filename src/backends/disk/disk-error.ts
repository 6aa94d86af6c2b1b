// Converts failures of the disk and of LMDB into typed errors with hints.
import { statfsSync } from "node:fs";
import { ConnectionError, type ErrorDetails, OperationTimeoutError, XCacheError } from "../../core/errors.ts";

/** Codes of Node and LMDB for a full disk; LMDB reports a short write as an I/O error. */
const NO_SPACE = new Set<unknown>(["ENOSPC", "EDQUOT", "EFBIG", "EIO", 28, 122, 27, 5, -30792]);
const LITTLE_SPACE_BYTES = 16 * 1024 ** 2;

/**
 * The error of a failed commit: always that of an unreachable store, never of a refused request, so that an invalidation
 * for which there was no space stays pending until there is.
 */
export function commitError(thrown: unknown, path: string): XCacheError {
  if (thrown instanceof XCacheError) return thrown;
  const { code, message } = thrown as Error & { code?: unknown };
  if (!NO_SPACE.has(code)) {
    return new ConnectionError(`the store in ${path} could not commit: ${message}`, {
      cause: thrown,
    });
  }
  const free = freeBytes(path);
  const state = free === undefined ? "" : `; ${free} bytes are free`;
  return new ConnectionError(`cannot write to ${path}: ${message}${state}`, {
    cause: thrown,
    hint:
      free === undefined || free < LITTLE_SPACE_BYTES
        ? "Free some space or lower max_bytes. Stored entries are intact and can be read."
        : "Check the disk, its quota and the file size limit of the process. Stored entries are intact.",
  });
}

/** The binding only reports that a commit failed; the reason is in a promise on its error. */
export async function causeOf(error: unknown): Promise<unknown> {
  const { commitError: reason } = error as { commitError?: Promise<never> };
  return reason === undefined ? error : reason.catch((cause: unknown) => cause);
}

export function lateError(): OperationTimeoutError {
  return new OperationTimeoutError("the store on disk did not commit the change within operation_timeout", {
    hint: "Another process may be stopped or hung while it writes to the store or opens it: resume or kill it. Or the disk is too slow for the amount written. Reads still work.",
  });
}

/** These processes kept the store from being opened. */
export function busyError(directory: string, pids: readonly number[]): ConnectionError {
  const holders = pids.length === 1 ? `process ${pids[0]} holds` : `processes ${pids.join(", ")} hold`;
  const them = pids.length === 1 ? "that process is" : "one of them is";
  return new ConnectionError(
    `cannot open the store in ${directory} within connect_timeout: ${holders} its lock to commit or close`,
    { hint: `If ${them} stopped or hung, resume or kill it.` },
  );
}

/** The error of every change after a fatal failure. */
export function noMoreChanges(cause: Error): ConnectionError {
  return new ConnectionError(`the store on disk accepts no more changes: ${cause.message}`, {
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

/** After a fatal failure LMDB accepts no more changes, and the binding would wait forever for its own lock. */
export function isFatal(thrown: unknown): boolean {
  const { code } = thrown as { code?: unknown };
  return thrown instanceof Error && !(thrown instanceof XCacheError) && !NO_SPACE.has(code);
}

const FOLDER_PROBLEMS: Readonly<Record<string, readonly [problem: string, hint: string]>> = {
  EACCES: ["this process may not write to it", "Make the folder writable for its user, or use another one."],
  EPERM: ["this process may not write to it", "Make the folder writable for its user, or use another one."],
  EROFS: ["its file system is mounted read-only", "Use a writable folder."],
  ENOTDIR: ["a part of the path is a file", "Use the path of a folder; it is created if it does not exist."],
  EEXIST: ["it is a file", "Use the path of a folder; it is created if it does not exist."],
  ENOSPC: ["the disk is full", "Free some space, or use a folder on another disk."],
  ENAMETOOLONG: ["its path is too long", "Use a shorter path."],
  ELOOP: ["its path contains a loop of symbolic links", "Use the path of a folder."],
  READERS_FULL: [
    "the maximum number of threads have it open",
    "Stop some of them; every thread that opens the store takes one reader slot.",
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
