// Every configuration field once: its default, unit, check and meaning. docs/reference/configuration.md is held to it.

import { parseStoreAddress } from "../core/address/store-url.ts";
import type { Backend } from "../core/backend.ts";
import type { Collector } from "../core/collector.ts";
import { ConfigError } from "../core/errors.ts";
import { MOST_ENTRIES } from "../core/limits.ts";
import { toSnake } from "../core/wire.ts";
import { labelOf } from "./place.ts";
import {
  boolean,
  choice,
  fraction,
  implementing,
  integer,
  lifetime,
  list,
  type Member,
  mapOf,
  record,
  type Shape,
  span,
  switchable,
  text,
  timeout,
} from "./shape.ts";
import type {
  CircuitBreakerConfig,
  CompressionAlgorithm,
  CompressionConfig,
  NearCacheConfig,
  ResolvedConfig,
  TableConfig,
} from "./types.ts";

export interface Field<T> extends Member<T> {
  /** Objects with behaviour can only be given in code; everything else also in a YAML file. */
  readonly codeOnly?: true;
}

type Fields = { readonly [K in keyof ResolvedConfig]: Field<ResolvedConfig[K]> };
export type FieldName = keyof ResolvedConfig;

const MAX_NAME_BYTES = 64 * 1024;

function refuseTooManyEntries(maxEntries: number | undefined, label: string): void {
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
    if (address.kind === "memory") refuseTooManyEntries(address.options.maxEntries, label);
    return value as string;
  },
  fromText: (line) => line,
};

const name = text(MAX_NAME_BYTES);

const table = record<TableConfig>({
  ttl: { shape: lifetime, default: undefined, unit: "s", description: "Left out: `default_ttl`." },
  tags: {
    shape: list(name, "strings"),
    default: undefined,
    description: "What every entry of the table carries besides the table's own tag.",
  },
});

const backend = implementing<Backend>("a Backend object", {
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

const collector = implementing<Collector>("a CacheMetrics or collector object", {
  increment: "function",
  gauge: "function",
  histogram: "function",
  timing: "function",
});

function absentHere(algorithm: CompressionAlgorithm): string | undefined {
  if (algorithm !== "zstd" || "zstdCompressSync" in process.getBuiltinModule("node:zlib")) return undefined;
  return `"brotli" or "gzip" on Node ${process.versions.node}, which has no zstd`;
}

export const FIELDS: Fields = {
  kvUrl: {
    shape: storeAddress,
    default: "redis://localhost:6379/0",
    description: "Where the store is. Ignored when `backend` is given.",
  },
  defaultTtl: {
    shape: lifetime,
    default: 300,
    unit: "s",
    description: "Lifetime of an entry when an operation names none.",
  },
  keyPrefix: {
    shape: text(256),
    default: "xcache",
    description: "First part of every stored key. Caches with different prefixes share nothing.",
  },
  enableFuzzy: {
    shape: boolean,
    default: false,
    description: "Turns `fuzzySearch` on.",
  },
  tables: {
    shape: mapOf(table, name, "a map from table name to { ttl, tags }"),
    default: Object.freeze(Object.create(null) as Record<string, TableConfig>),
    description: "Per-table lifetime and tags for `cachedDependency`.",
  },
  enableMetrics: {
    shape: boolean,
    default: true,
    description: "Measures operations and lets `startMetricsCollection` run.",
  },
  metricsRetentionDays: {
    shape: integer(1, 3650),
    default: 7,
    unit: "days",
    description: "How long the per-minute statistics stay in the store.",
  },
  backend: {
    shape: backend,
    default: undefined,
    description: "The store itself, instead of an address.",
    codeOnly: true,
  },
  metrics: {
    shape: collector,
    default: undefined,
    description: "Where measurements go. Left out, they go nowhere.",
    codeOnly: true,
  },
  nearCache: {
    shape: switchable<Required<NearCacheConfig>>({
      maxEntries: { shape: integer(1, MOST_ENTRIES), default: 10_000, description: "Most entries kept." },
      maxBytes: {
        shape: integer(1),
        default: 64 * 1024 * 1024,
        unit: "bytes",
        description: "Most memory for values, about.",
      },
      values: {
        shape: choice(["copy", "shared"]),
        default: "copy",
        description:
          "Whether callers get copies, or the kept objects themselves, which nobody may change then.",
      },
    }),
    default: false,
    description: "Keeps hot entries in this process, coherent with the store.",
  },
  operationTimeout: {
    shape: timeout,
    default: 1,
    unit: "s",
    description: "Deadline of every store operation, waiting for a connection included.",
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
    shape: record<Required<CircuitBreakerConfig>>({
      failureThreshold: {
        shape: integer(1),
        default: 5,
        description: "Failures in a row that open the circuit.",
      },
      resetTimeout: {
        shape: timeout,
        default: 30,
        unit: "s",
        description: "How long it stays open before one call probes the store.",
      },
    }),
    default: Object.freeze({ failureThreshold: 5, resetTimeout: 30 }),
    description: "When a failing store is left alone, and for how long.",
  },
  compression: {
    shape: switchable<Required<CompressionConfig>>({
      thresholdBytes: {
        shape: integer(0),
        default: 1024,
        unit: "bytes",
        description: "Encoded values shorter than this are stored as they are.",
      },
      algorithm: {
        shape: choice(["brotli", "gzip", "zstd"], absentHere),
        default: "brotli",
        description: "zstd is refused where Node has none (before 22.15).",
      },
    }),
    default: false,
    description: "Compresses large values.",
  },
  staleIfError: {
    shape: span,
    default: 0,
    unit: "s",
    description: "How long after its expiry an old value may answer when a load fails.",
  },
  staleWhileRevalidate: {
    shape: span,
    default: 0,
    unit: "s",
    description: "How long after its expiry an old value answers while one load refreshes it.",
  },
  ttlJitter: {
    shape: fraction,
    default: 0,
    unit: "fraction",
    description: "Shortens default lifetimes at random by up to this share.",
  },
  serialization: {
    shape: choice(["msgpack", "json"]),
    default: "msgpack",
    description: "How values are written.",
  },
};

export const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export const wireName = (field: FieldName): string => toSnake(field);

/** The environment variable of a field. */
export const envName = (field: FieldName): string => `XCACHE_${wireName(field).toUpperCase()}`;
