// Maps any error to what the command line reports: message, hint and exit code.
import { ERROR_CODES, type ErrorCode } from "../core/error-codes.ts";
import { XCacheError } from "../core/errors.ts";
import { redactText } from "../core/redact.ts";
import { CommandError, EXIT, type ExitCode } from "./exit-code.ts";
import { escapeControls } from "./terminal/escape.ts";

export interface Failure {
  /** An error code of the library, or `usage` or `failed`. */
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

/** Replace the library's general hints, which address programmers. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  CONNECTION_FAILED:
    "Check that the store is running and the address is right; `xcache doctor --verbose` shows where the address comes from.",
  OPERATION_TIMEOUT: "Check the store's load and the network, or raise the deadline, as in --timeout 10s.",
  CIRCUIT_OPEN: "The store failed repeatedly. Run `xcache doctor` to find out why.",
  CONFIG_INVALID: "Correct the setting that the message names.",
  ARGUMENT_INVALID: "See the --help of the command.",
  STORE_FAILED: "Run `xcache doctor` to find out why.",
};

const NO_ADDRESS =
  "No address was given, so the default was tried. Pass --kv-url, set XCACHE_KV_URL, or pass --config.";

/** `usesDefault`: no store address was configured. */
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
    hint: code === undefined ? "Please report this as a bug, with the command that caused it." : FILE_HINT,
    exitCode: EXIT.failed,
  };
}

const FILE_HINT = "Check the path, its permissions and the free disk space.";

const clean = (text: string): string => escapeControls(redactText(text));

function hintFor(error: XCacheError, usesDefault: boolean): string {
  if (usesDefault && BY_TYPE[error.errorType] === EXIT.unreachable) return NO_ADDRESS;
  const isGeneral = error.hint === ERROR_CODES[error.code].hint;
  return (isGeneral ? HINTS[error.code] : undefined) ?? error.hint;
}
