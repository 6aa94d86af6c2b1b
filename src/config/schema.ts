// The table of all configuration fields: default, unit, check and meaning. A test holds docs/reference/configuration.md to it.

import type { PasswordFunction } from "../core/address/address.ts";
import { parseStoreAddress } from "../core/address/store-url.ts";
import type { Backend } from "../core/backend.ts";
import { MOST_ENTRIES } from "../core/backend-options.ts";
import type { Collector } from "../core/collector.ts";
import { type EncryptionConfig, EncryptionSettings } from "../core/encryption-settings.ts";
import { ConfigError } from "../core/errors.ts";
import { onFirstUse } from "../core/lazy-builtin.ts";
import { isPlainRecord, toSnake } from "../core/wire.ts";
import { HIDDEN, labelOf, rejectValue } from "./place.ts";
import {
  boolean,
  choice,
  fraction,
  implementing,
  integer,
  lifetime,
  type Member,
  type Members,
  mapOf,
  record,
  type Shape,
  span,
  switchable,
  text,
  textOrTexts,
  timeout,
} from "./shape.ts";
import type {
  CompressionAlgorithm,
  CompressionConfig,
  NearCacheConfig,
  ResolvedConfig,
  ResolvedTable,
} from "./types.ts";

export interface Field<T> extends Member<T> {
  /** Can only be set in code, since it is an object with methods; all other fields also in a YAML file. */
  readonly codeOnly?: true;
}

type Fields = { readonly [K in keyof ResolvedConfig]: Field<ResolvedConfig[K]> };
export type FieldName = keyof ResolvedConfig;

const MAX_NAME_BYTES = 64 * 1024;

function rejectTooManyEntries(maxEntries: number | undefined, label: string): void {
  if (maxEntries === undefined || maxEntries <= MOST_ENTRIES) return;
  throw new ConfigError(
    "CONFIG_INVALID",
    `${label}: the option max_entries must be a whole number from 1 to ${MOST_ENTRIES}, got ${maxEntries}`,
  );
}

const storeAddress: Shape<string> = {
  expected: "a store address",
  check(value, place) {
    const label = labelOf(place);
    const address = parseStoreAddress(value, label);
    if (address.kind === "memory") rejectTooManyEntries(address.options.maxEntries, label);
    return value as string;
  },
  fromText: (line) => line,
};

const name = text(MAX_NAME_BYTES);

/** Says what kind of value arrived, never the value. */
const password: Shape<string | PasswordFunction> = {
  expected: name.expected,
  check(value, place) {
    if (typeof value === "function") return value as PasswordFunction;
    if (typeof value === "string" && value !== "" && Buffer.byteLength(value) <= MAX_NAME_BYTES) return value;
    const kind =
      typeof value === "string"
        ? `a string of ${value.length} characters`
        : `a value of type ${typeof value}`;
    throw new ConfigError("CONFIG_INVALID", `${labelOf(place)} must be ${this.expected}, got ${kind}`);
  },
  fromText: (line) => line,
};

const table = () =>
  record<ResolvedTable>({
    ttl: { shape: lifetime, default: undefined, unit: "s", description: "Default: `default_ttl`." },
    tags: {
      shape: textOrTexts(name),
      default: undefined,
      description: "Tags of every entry of the table, besides the table's own tag.",
    },
  });

const backend = () =>
  implementing<Backend>("a Backend object", {
    name: "string",
    capabilities: "object",
    connect: "function",
    disconnect: "function",
    ping: "function",
    now: "function",
    clockErrorMs: "function",
    read: "function",
    readMany: "function",
    write: "function",
    writeMany: "function",
    swap: "function",
    take: "function",
    takeMany: "function",
    scan: "function",
    usage: "function",
  });

const collector = () =>
  implementing<Collector>("a CacheMetrics or collector object", {
    increment: "function",
    gauge: "function",
    histogram: "function",
    timing: "function",
  });

function whyUnavailable(algorithm: CompressionAlgorithm): string | undefined {
  if (algorithm !== "zstd" || "zstdCompressSync" in process.getBuiltinModule("node:zlib")) return undefined;
  return `"brotli" or "gzip" on Node ${process.versions.node}, which has no zstd`;
}

/** The secrets themselves are checked when the store is opened, and never shown. */
const secrets: Shape<EncryptionConfig["keys"]> = {
  expected: "an object of secrets by id, or a function that returns one",
  check(value, place) {
    if (typeof value === "function" || isPlainRecord(value)) return value as EncryptionConfig["keys"];
    return rejectValue(place, this.expected, HIDDEN);
  },
  isSecret: true,
};

const encryptionFields: Members<EncryptionConfig> = {
  keys: {
    shape: secrets,
    default: {},
    description: "Secrets of at least 16 bytes by id; in code also a function that returns them.",
  },
  use: {
    shape: text(255),
    default: undefined,
    description: "The id of the key that encrypts; the others only decrypt. Default: the only key there is.",
  },
  hideKeys: {
    shape: {
      expected: "true, false or the id of a key",
      check(value, place) {
        return typeof value === "boolean" || typeof value === "string"
          ? value
          : rejectValue(place, this.expected, value);
      },
    },
    default: false,
    description:
      "Hides keys and tags from the store too: the id of the key that hides them, which must not change when keys are rotated; `true`: the first one.",
  },
};

const encryption: Shape<false | EncryptionSettings> = {
  expected: "false or { keys, use, hide_keys }",
  check(value, place) {
    if (value === false || value instanceof EncryptionSettings) return value;
    if (!isPlainRecord(value)) return rejectValue(place, this.expected, HIDDEN);
    return new EncryptionSettings(record(encryptionFields).check(value, place));
  },
  isSecret: true,
  members: encryptionFields,
};

export const fields = onFirstUse(
  (): Fields => ({
    kvUrl: {
      shape: storeAddress,
      default: "redis://localhost:6379/0",
      description: "Address of the store. Ignored if `backend` is set.",
    },
    username: {
      shape: name,
      default: undefined,
      description: "User name for Redis or Valkey. Default: the one in `kv_url`.",
    },
    password: {
      shape: password,
      default: undefined,
      description:
        "Password for Redis or Valkey. In code also a function, called for every connection. Default: the one in `kv_url`.",
    },
    defaultTtl: {
      shape: lifetime,
      default: 300,
      unit: "s",
      description: "Time to live of an entry if the operation sets none.",
    },
    keyPrefix: {
      shape: text(256),
      default: "xcache",
      description: "First part of every stored key. Caches with different prefixes share nothing.",
    },
    enableFuzzy: {
      shape: boolean,
      default: false,
      description: "Enables `fuzzySearch`.",
    },
    tables: {
      shape: mapOf(table(), name, "a map from table name to { ttl, tags }"),
      default: Object.freeze(Object.create(null) as Record<string, ResolvedTable>),
      description: "Per-table ttl and tags for `cachedDependency`.",
    },
    enableMetrics: {
      shape: boolean,
      default: true,
      description: "Measures operations and enables `startMetricsCollection`.",
    },
    metricsRetentionDays: {
      shape: integer(1, 3650),
      default: 7,
      unit: "days",
      description: "How long per-minute statistics are kept in the store.",
    },
    backend: {
      shape: backend(),
      default: undefined,
      description: "The store itself, instead of an address.",
      codeOnly: true,
    },
    metrics: {
      shape: collector(),
      default: undefined,
      description: "Receives the measurements. Default: none are sent.",
      codeOnly: true,
    },
    nearCache: {
      shape: switchable<Required<NearCacheConfig>>({
        maxEntries: {
          shape: integer(1, MOST_ENTRIES),
          default: 10_000,
          description: "Maximum number of entries.",
        },
        maxBytes: {
          shape: integer(1),
          default: 64 * 1024 * 1024,
          unit: "bytes",
          description: "Approximate limit on the memory of values.",
        },
        values: {
          shape: choice(["copy", "shared", "frozen"]),
          default: "copy",
          description:
            "Whether callers get copies, the cached objects themselves, which they must not modify, or frozen ones.",
        },
      }),
      default: false,
      description: "Keeps hot entries in this process, coherent with the store.",
    },
    operationTimeout: {
      shape: timeout,
      default: 1,
      unit: "s",
      description: "Deadline of every store operation, including the wait for a connection.",
    },
    connectTimeout: {
      shape: timeout,
      default: 5,
      unit: "s",
      description: "How long to wait for a connection.",
    },
    poolSize: {
      shape: integer(1, 1024),
      default: 1,
      description: "Connections for ordinary commands.",
    },
    circuitBreaker: {
      shape: record<ResolvedConfig["circuitBreaker"]>({
        failureThreshold: {
          shape: integer(1),
          default: 5,
          description: "Consecutive failures that open the circuit.",
        },
        resetTimeout: {
          shape: timeout,
          default: 30,
          unit: "s",
          description: "How long the circuit stays open before one call probes the store.",
        },
      }),
      default: Object.freeze({ failureThreshold: 5, resetTimeout: 30 }),
      description: "When calls to a failing store are suspended, and for how long.",
    },
    compression: {
      shape: switchable<Required<CompressionConfig>>({
        thresholdBytes: {
          shape: integer(0),
          default: 1024,
          unit: "bytes",
          description: "Encoded values shorter than this are not compressed.",
        },
        algorithm: {
          shape: choice(["brotli", "gzip", "zstd"], whyUnavailable),
          default: "brotli",
          description: "zstd needs Node 22.15 or later.",
        },
      }),
      default: false,
      description: "Compresses large values.",
    },
    staleIfError: {
      shape: span,
      default: 0,
      unit: "s",
      description: "How long after expiry a stale value may be returned when a load fails.",
    },
    staleWhileRevalidate: {
      shape: span,
      default: 0,
      unit: "s",
      description: "How long after expiry a stale value is returned while one load refreshes it.",
    },
    loadLimit: {
      shape: timeout,
      default: 60,
      unit: "s",
      description:
        "How long others wait for a load, in this process and elsewhere, before one of them loads itself.",
    },
    ttlJitter: {
      shape: fraction,
      default: 0,
      unit: "fraction",
      description: "Randomly shortens default ttls by up to this fraction.",
    },
    serialization: {
      shape: choice(["msgpack", "json"]),
      default: "msgpack",
      description: "How values are serialized.",
    },
    encryption: {
      shape: encryption,
      default: false,
      description: "Encrypts entries in shared stores with AES-256-GCM: `{ keys: { id: secret }, use: id }`.",
    },
  }),
);

export const fieldNames = onFirstUse(() => Object.keys(fields()) as FieldName[]);

export const wireName = (field: FieldName): string => toSnake(field);

/** The environment variable of a field. */
export const envName = (field: FieldName): string => `XCACHE_${wireName(field).toUpperCase()}`;
