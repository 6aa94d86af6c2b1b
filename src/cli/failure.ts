// What went wrong, in the words of the command line: message, exit code and what to do next.
import { ERROR_CODES, type ErrorCode, XCacheError } from "../core/errors.ts";
import { redactText } from "../core/redact.ts";
import { CommandError } from "./command-error.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { escapeControls } from "./terminal/escape.ts";

export interface Failure {
  /** Of the library's table of errors, or `usage`, `failed`. */
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly exitCode: ExitCode;
}

const BY_TYPE: Readonly<Record<XCacheError["errorType"], ExitCode>> = {
  config: EXIT.usage,
  key: EXIT.usage,
  codec: EXIT.failed,
  connection: EXIT.unreachable,
  timeout: EXIT.unreachable,
  circuit_open: EXIT.unreachable,
  unsupported: EXIT.unsupported,
  delivery: EXIT.failed,
  unknown: EXIT.failed,
};

/** Where the library speaks to programmers. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  CONNECTION_FAILED:
    "Check that the store is running and the address is right; `xcache doctor` shows where the address comes from.",
  OPERATION_TIMEOUT: "Check the store's load and the network, or give it longer, as in --timeout 10s.",
  CIRCUIT_OPEN: "The store failed repeatedly. `xcache doctor` looks for the reason.",
  CONFIG_INVALID: "Correct it; `xcache doctor` shows every setting and where it comes from.",
  ARGUMENT_INVALID: "See --help of the command.",
  STORE_FAILED: "`xcache doctor` looks for the reason.",
};

const NO_ADDRESS =
  "No address was given, so the default was tried. Pass --kv-url, set XCACHE_KV_URL, or name a file with --config.";

/** `usesDefault`: nobody said where the store is. */
export function failureOf(error: unknown, usesDefault: boolean): Failure {
  if (error instanceof CommandError) {
    const { message, hint, exitCode } = error;
    return { code: exitCode === EXIT.usage ? "usage" : "failed", message: clean(message), hint, exitCode };
  }
  if (error instanceof XCacheError) {
    return {
      code: error.code,
      message: clean(error.message),
      hint: clean(hintFor(error, usesDefault)),
      exitCode: error.code === "MISSING_PEER" ? EXIT.unsupported : BY_TYPE[error.errorType],
    };
  }
  const { message, code } = error as NodeJS.ErrnoException;
  return {
    code: "failed",
    message: clean(String(message ?? error)),
    hint: code === undefined ? "Please report this with the command that led to it." : FILE_HINT,
    exitCode: EXIT.failed,
  };
}

const FILE_HINT = "Check the path, its permissions and the room on the disk.";

const clean = (text: string): string => escapeControls(redactText(text));

function hintFor(error: XCacheError, usesDefault: boolean): string {
  if (usesDefault && BY_TYPE[error.errorType] === EXIT.unreachable) return NO_ADDRESS;
  const isGeneral = error.hint === ERROR_CODES[error.code].hint;
  return (isGeneral ? HINTS[error.code] : undefined) ?? error.hint;
}
