// Every error xcache throws, one small class per kind. Their codes are in error-codes.ts.
import { type CodesOf, ERROR_CODES, type ErrorCode, type ErrorType } from "./error-codes.ts";
import { installCommand } from "./package-manager.ts";
import { redactText } from "./redact.ts";

export interface ErrorDetails {
  /** The operation that failed, such as `get`. */
  readonly operation?: string;
  /** What to do next; the table's hint when omitted. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** Base of every error xcache throws. */
export class XCacheError extends Error {
  readonly code: ErrorCode;
  readonly operation: string | undefined;
  /** What to do next. */
  readonly hint: string;
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  readonly errorType: ErrorType;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    const facts = ERROR_CODES[code];
    this.name = new.target.name;
    this.code = code;
    this.operation = details.operation;
    this.hint = details.hint ?? facts.hint;
    this.retryable = facts.retryable;
    this.errorType = facts.errorType;
  }
}

/** Wrong configuration, options or arguments. */
export class ConfigError extends XCacheError {
  declare readonly code: CodesOf<"ConfigError">;
  constructor(code: CodesOf<"ConfigError">, message: string, details?: ErrorDetails) {
    super(code, message, details);
  }
}

interface PeerDetails extends ErrorDetails {
  readonly installCommand?: string;
  /** The version that is installed and too old. */
  readonly found?: string;
  /** The oldest version that works. */
  readonly oldest?: string;
  /** Why a package that is there does not load. */
  readonly failure?: string;
}

/**
 * A package that a feature needs is not installed, in a version that is too old, or does not load; `installCommand` installs it
 * with the package manager in use.
 */
export class MissingPeerError extends XCacheError {
  declare readonly code: CodesOf<"MissingPeerError">;
  readonly packageName: string;
  /** The version that is installed and too old; undefined if none is installed. */
  readonly foundVersion: string | undefined;
  readonly installCommand: string;
  constructor(packageName: string, feature: string, details: PeerDetails = {}) {
    const { found, oldest, failure } = details;
    const command = details.installCommand ?? installCommand(packageName);
    const hint = details.hint ?? `Run: ${command}`;
    const lack =
      found !== undefined
        ? `${packageName} ${oldest} or later, but ${found} is installed`
        : `the package "${packageName}", which ${failure === undefined ? "is not installed" : `does not load (${failure})`}`;
    super(found === undefined ? "MISSING_PEER" : "PEER_VERSION", `${feature} needs ${lack}. ${hint}`, {
      ...details,
      hint,
    });
    this.packageName = packageName;
    this.foundVersion = found;
    this.installCommand = command;
  }
}

/** A key, tag, pattern or namespace that cannot be used. */
export class InvalidKeyError extends XCacheError {
  constructor(message: string, details?: ErrorDetails) {
    super("KEY_INVALID", message, details);
  }
}

/** A value that cannot be stored, or stored bytes that cannot be read. */
export class CodecError extends XCacheError {
  declare readonly code: CodesOf<"CodecError">;
  /** Where in the value the offending part is, such as `$.items[3].run`. */
  readonly path: string | undefined;
  constructor(code: CodesOf<"CodecError">, message: string, details: ErrorDetails & { path?: string } = {}) {
    super(code, message, details);
    this.path = details.path;
  }
}

/** An alert that could not be delivered. */
export class AlertDeliveryError extends XCacheError {
  constructor(message: string, details?: ErrorDetails) {
    super("ALERT_DELIVERY", message, details);
  }
}

/** The store failed. Parent of the connection, timeout, circuit and unsupported errors. */
export class BackendError extends XCacheError {
  constructor(
    code: CodesOf<
      "BackendError" | "ConnectionError" | "OperationTimeoutError" | "CircuitOpenError" | "UnsupportedError"
    >,
    message: string,
    details?: ErrorDetails,
  ) {
    super(code, message, details);
  }
}

/** The store cannot be reached. */
export class ConnectionError extends BackendError {
  constructor(message: string, details: ErrorDetails & { code?: CodesOf<"ConnectionError"> } = {}) {
    super(details.code ?? "CONNECTION_FAILED", message, details);
  }
}

/** The store or a load did not answer in time. */
export class OperationTimeoutError extends BackendError {
  constructor(message: string, details: ErrorDetails & { code?: CodesOf<"OperationTimeoutError"> } = {}) {
    super(details.code ?? "OPERATION_TIMEOUT", message, details);
  }
}

/** The circuit breaker rejected the call without calling the store. */
export class CircuitOpenError extends BackendError {
  constructor(message: string, details?: ErrorDetails) {
    super("CIRCUIT_OPEN", message, details);
  }
}

/** The store in use does not support the operation. */
export class UnsupportedError extends BackendError {
  constructor(message: string, details?: ErrorDetails) {
    super("UNSUPPORTED", message, details);
  }
}

const LONGEST_QUOTE = 40;

/**
 * Describes an unexpected value in a message: never more of it than a short scalar, and never the credentials of an
 * address.
 */
export function describeArrival(value: unknown): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "string":
      return value.length <= LONGEST_QUOTE
        ? JSON.stringify(redactText(value))
        : `a string of ${value.length} characters`;
    case "bigint": {
      const digits = String(value);
      return digits.length <= LONGEST_QUOTE ? `${digits}n` : `a bigint of ${digits.length} digits`;
    }
    case "number":
    case "boolean":
    case "undefined":
      return String(value);
    case "object":
      return Array.isArray(value) ? `an array of ${value.length}` : `an object${className(value)}`;
    default:
      return `a ${typeof value}`;
  }
}

/** The object may be hostile: a getter that throws, a name of arbitrary length. */
function className(value: object): string {
  try {
    const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
    return typeof name === "string" && name.length > 0 && name.length <= LONGEST_QUOTE ? ` (${name})` : "";
  } catch {
    return "";
  }
}

/** For a store that is to continue a scan. */
export function unknownPosition(position: string): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `cursor must be one that a scan of this store returned, got ${describeArrival(position)}`,
    { operation: "scan", hint: "Begin the scan again without a cursor." },
  );
}
