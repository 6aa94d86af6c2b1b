// The table of error codes: what each means, whether to try again, and what to do.

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
  CODE_MISSING: {
    errorClass: "ConfigError",
    errorType: "config",
    retryable: false,
    summary: "A bundle of the application, or its deployment, lacks a file of xcache.",
    hint: "Let the bundler resolve packages with the condition `module`, or leave xcache out of the bundle.",
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
    summary: "A feature needs a package that is not installed, or does not load.",
    hint: "Do what the message says: mostly run the install command given there.",
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

/** The codes that one class of errors may have. */
export type CodesOf<Name extends string> = {
  [C in ErrorCode]: (typeof ERROR_CODES)[C]["errorClass"] extends Name ? C : never;
}[ErrorCode];
