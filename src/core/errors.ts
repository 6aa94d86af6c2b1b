// Every error xcache throws: one table of codes, one small class per kind.
import { installCommand } from "./package-manager.ts";
import { redactText } from "./redact.ts";

/** Coarse cause of an error, used as the `error_type` label of `cache.errors.total`. */
export type ErrorType =
  | "config"
  | "key"
  | "codec"
  | "connection"
  | "timeout"
  | "circuit_open"
  | "unsupported"
  | "delivery"
  | "unknown";

interface CodeFacts {
  readonly errorClass: string;
  readonly errorType: ErrorType;
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  /** What happened, for the reference page. */
  readonly summary: string;
  /** What to do next, unless the thrower knows better. */
  readonly hint: string;
}

function codes<const T extends Record<string, CodeFacts>>(table: T): T {
  return table;
}

/** Each code once. docs/reference/errors.md is held to this table by a test. */
export const ERROR_CODES = codes({
  CONFIG_INVALID: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "A configuration field, environment variable or option holds a value that is not allowed.",
    hint: "Correct the value named in the message.",
  },
  CONFIG_UNKNOWN_FIELD: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "A configuration object, YAML file or options object has a key that xcache does not know.",
    hint: "Remove the key or use the nearest valid name given in the message.",
  },
  CONFIG_UNREADABLE: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "A configuration file cannot be read or is not valid YAML.",
    hint: "Check the path, its permissions and the line named in the message.",
  },
  FEATURE_DISABLED: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "An operation needs a feature that the configuration leaves off.",
    hint: "Turn the feature on in the configuration.",
  },
  ARGUMENT_INVALID: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "An argument of an operation has the wrong type or range.",
    hint: "Pass what the message says was expected.",
  },
  NO_DEFAULT_CACHE: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "A function was wrapped without a cache and no default cache is set.",
    hint: "Pass `cache` or call setDefaultCache(cache) first.",
  },
  NAME_REQUIRED: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "An anonymous function was wrapped without a name to build its keys from.",
    hint: "Give the function a name or pass `name`.",
  },
  NAME_TAKEN: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "Two different functions were wrapped under one name in one cache.",
    hint: "Pass a distinct `name` to one of them.",
  },
  MISSING_PEER: {
    errorClass: "MissingPeerError",
    errorType: "config",
    retryable: false,
    summary: "A feature needs a package that is not installed.",
    hint: "Run the install command given in the message.",
  },
  PEER_VERSION: {
    errorClass: "MissingPeerError",
    errorType: "config",
    retryable: false,
    summary: "A feature needs a newer version of a package than the one that is installed.",
    hint: "Run the install command given in the message.",
  },
  KEY_INVALID: {
    errorClass: "InvalidKeyError",
    errorType: "key",
    retryable: false,
    summary: "A key, tag, pattern or namespace is not a non-empty string within the size limit.",
    hint: "Use a non-empty string of at most 64 KiB of UTF-8.",
  },
  VALUE_UNSUPPORTED: {
    errorClass: "CodecError",
    errorType: "codec",
    retryable: false,
    summary: "A value, or a part of it, cannot be stored.",
    hint: "Store plain data only; the message names the path of the offending part.",
  },
  VALUE_TOO_LARGE: {
    errorClass: "CodecError",
    errorType: "codec",
    retryable: false,
    summary: "An encoded value exceeds the size or nesting limit.",
    hint: "Store less under one key, or turn compression on.",
  },
  FRAME_INVALID: {
    errorClass: "CodecError",
    errorType: "codec",
    retryable: false,
    summary: "Bytes read from the store are not a frame written by xcache, or are damaged.",
    hint: "Check what else writes under this key_prefix; deleting the key is safe.",
  },
  FRAME_VERSION: {
    errorClass: "CodecError",
    errorType: "codec",
    retryable: false,
    summary: "A stored record was written by a newer major format than this version reads.",
    hint: "Upgrade xcache here, or use another key_prefix.",
  },
  ENTRY_UNREADABLE: {
    errorClass: "CodecError",
    errorType: "codec",
    retryable: false,
    summary: "An entry cannot be decrypted: its key is not among the keys, or it was altered or moved.",
    hint: "Give every process the keys that others still encrypt with; otherwise see who else writes to the store.",
  },
  CONNECTION_FAILED: {
    errorClass: "ConnectionError",
    errorType: "connection",
    retryable: true,
    summary: "The store cannot be reached or dropped the connection.",
    hint: "Check that the store is running and the address is right.",
  },
  PROTOCOL_VIOLATED: {
    errorClass: "ConnectionError",
    errorType: "connection",
    retryable: true,
    summary: "The store sent something that its protocol does not allow there; the connection was dropped.",
    hint: "Check that the address leads to the store itself and not to a proxy or another service.",
  },
  DISCONNECTED: {
    errorClass: "ConnectionError",
    errorType: "connection",
    retryable: false,
    summary: "An operation was called after disconnect().",
    hint: "Call connect() first, or create a new cache.",
  },
  STORE_FAILED: {
    errorClass: "BackendError",
    errorType: "unknown",
    retryable: true,
    summary: "The store answered with an error.",
    hint: "See `cause` for the store's own message.",
  },
  OPERATION_TIMEOUT: {
    errorClass: "OperationTimeoutError",
    errorType: "timeout",
    retryable: true,
    summary: "The store did not answer within operation_timeout.",
    hint: "Check the store's load and the network, or raise operation_timeout.",
  },
  LOAD_TIMEOUT: {
    errorClass: "OperationTimeoutError",
    errorType: "timeout",
    retryable: true,
    summary: "A load did not finish within hardTimeout; it continues and its result will be stored.",
    hint: "Call again later, raise hardTimeout or make the load faster.",
  },
  CIRCUIT_OPEN: {
    errorClass: "CircuitOpenError",
    errorType: "circuit_open",
    retryable: true,
    summary: "The circuit breaker is open: the store failed repeatedly and is not called for now.",
    hint: "Wait for the next probe; see detailedHealthCheck().",
  },
  UNSUPPORTED: {
    errorClass: "UnsupportedError",
    errorType: "unsupported",
    retryable: false,
    summary: "The store in use cannot do this operation.",
    hint: "Use a store that can; the message names the operation.",
  },
  EMBEDDING_FAILED: {
    errorClass: "EmbeddingError",
    errorType: "unknown",
    retryable: true,
    summary: "The embedder of a semantic cache threw or did not answer in time.",
    hint: "See `cause`; getOrSet runs its load meanwhile.",
  },
  EMBEDDING_INVALID: {
    errorClass: "EmbeddingError",
    errorType: "config",
    retryable: false,
    summary:
      "The embedder of a semantic cache returned something that is not a vector comparable with the others.",
    hint: "Return the same number of finite numbers every time, not all of them zero.",
  },
  ALERT_DELIVERY: {
    errorClass: "AlertDeliveryError",
    errorType: "delivery",
    retryable: true,
    summary: "An alert could not be delivered to its destination.",
    hint: "Check the webhook address or the SMTP settings.",
  },
});

export type ErrorCode = keyof typeof ERROR_CODES;

type CodesOf<Name extends string> = {
  [C in ErrorCode]: (typeof ERROR_CODES)[C]["errorClass"] extends Name ? C : never;
}[ErrorCode];

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
}

/**
 * A package that a feature needs is not installed, or in a version that is too old; `installCommand` installs it with the
 * package manager in use.
 */
export class MissingPeerError extends XCacheError {
  declare readonly code: CodesOf<"MissingPeerError">;
  readonly packageName: string;
  /** The version that is installed and too old; undefined if none is installed. */
  readonly foundVersion: string | undefined;
  readonly installCommand: string;
  constructor(packageName: string, feature: string, details: PeerDetails = {}) {
    const { found, oldest } = details;
    const command = details.installCommand ?? installCommand(packageName);
    const lack =
      found === undefined
        ? `the package "${packageName}", which is not installed`
        : `${packageName} ${oldest} or later, but ${found} is installed`;
    super(
      found === undefined ? "MISSING_PEER" : "PEER_VERSION",
      `${feature} needs ${lack}. Run: ${command}`,
      {
        hint: `Run: ${command}`,
        ...details,
      },
    );
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
