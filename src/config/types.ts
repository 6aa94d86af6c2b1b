// The configuration as users write it, and as the library reads it with all defaults applied.

import type { PasswordFunction } from "../core/address/address.ts";
import type { Backend } from "../core/backend.ts";
import type { Collector } from "../core/collector.ts";
import type { Duration } from "../core/duration.ts";
import type { EncryptionConfig, EncryptionSettings } from "../core/encryption-settings.ts";
import type { Tags } from "../core/options.ts";

/** Settings of one database table, used by `cachedDependency`. */
export interface TableConfig {
  /** Seconds or a text such as "5m", at least 0.001; Infinity never expires. Default: the cache's `defaultTtl`. */
  readonly ttl?: Duration;
  /** Tags every entry of the table carries besides the table's own, one or a list. Default: none. */
  readonly tags?: Tags;
}

/** Limits of the near tier. */
export interface NearCacheConfig {
  /** Most entries kept, 1 to 8388608. Default: 10000. */
  readonly maxEntries?: number;
  /** Most bytes of values kept, about. Default: 67108864 (64 MiB). */
  readonly maxBytes?: number;
  /**
   * `shared` returns the cached objects themselves, which callers must not modify; `frozen` one deeply frozen copy, which
   * they cannot. Default: copy.
   */
  readonly values?: "copy" | "shared" | "frozen";
}

export interface CircuitBreakerConfig {
  /** Consecutive failures that open the circuit. Default: 5. */
  readonly failureThreshold?: number;
  /** How long the circuit stays open before one call probes the store. Default: 30 seconds. */
  readonly resetTimeout?: Duration;
}

/** `zstd` needs Node 22.15 or later and is rejected elsewhere. */
export type CompressionAlgorithm = "brotli" | "gzip" | "zstd";

export interface CompressionConfig {
  /** Encoded values with fewer bytes are not compressed. Default: 1024. */
  readonly thresholdBytes?: number;
  /** Default: brotli. */
  readonly algorithm?: CompressionAlgorithm;
}

export type Serialization = "msgpack" | "json";

/**
 * Everything is optional: `new XCache()` connects to `redis://localhost:6379/0`. Durations are numbers of seconds or texts
 * such as "500ms", "30s", "5m", "2h" and "7d".
 */
export interface CacheConfig {
  /**
   * Address of the store: `redis://`, `rediss://`, `unix://`, `redis+cluster://h1,h2`, `redis+sentinel://h1,h2/name`
   * (each also as `valkey`), `memcached://h1,h2`, `memory://` or `file:///dir`. Ignored when `backend` is given.
   * Default: `redis://localhost:6379/0`.
   */
  readonly kvUrl?: string;
  /** User name for Redis or Valkey. Default: the one in `kvUrl`. */
  readonly username?: string;
  /**
   * Password for Redis or Valkey, or a function that is called for every connection and returns it, if need be with a user name
   * and an expiry. Default: the one in `kvUrl`.
   */
  readonly password?: string | PasswordFunction;
  /** Used when an operation sets no ttl. At least 0.001 seconds; Infinity never expires. Default: 300 seconds. */
  readonly defaultTtl?: Duration;
  /** First part of every stored key; caches with different prefixes share nothing. 1 to 256 bytes. Default: `xcache`. */
  readonly keyPrefix?: string;
  /** Enables `fuzzySearch`. Default: false. */
  readonly enableFuzzy?: boolean;
  /** Per-table settings for `cachedDependency`, by table name. Default: none. */
  readonly tables?: Readonly<Record<string, TableConfig>>;
  /** Whether operations are measured and `startMetricsCollection` does anything. Default: true. */
  readonly enableMetrics?: boolean;
  /** Days the per-minute statistics are kept in the store, 1 to 3650. Default: 7. */
  readonly metricsRetentionDays?: number;
  /** The store itself, instead of an address. Default: created from `kvUrl`. */
  readonly backend?: Backend;
  /** Where measurements go. Default: nowhere. */
  readonly metrics?: Collector;
  /** Keeps hot entries in this process, coherent with the store; `true` uses the default limits. Default: false. */
  readonly nearCache?: boolean | NearCacheConfig;
  /** How long any store operation may take, including the wait for a connection. Default: 1 second. */
  readonly operationTimeout?: Duration;
  /** How long to wait for a connection. Default: 5 seconds. */
  readonly connectTimeout?: Duration;
  /** Connections for ordinary commands, 1 to 1024. Default: 1. */
  readonly poolSize?: number;
  /** When calls to a failing store are suspended, and for how long. */
  readonly circuitBreaker?: CircuitBreakerConfig;
  /** Compresses large values; `true` uses the defaults. Default: false. */
  readonly compression?: boolean | CompressionConfig;
  /** How long after expiry a stale value may be returned when a load fails; 0: never. Default: 0. */
  readonly staleIfError?: Duration;
  /** How long after expiry a stale value is returned while one load refreshes it; 0: never. Default: 0. */
  readonly staleWhileRevalidate?: Duration;
  /** How long others wait for a load, in this process and elsewhere, before one of them loads itself. Default: 60 seconds. */
  readonly loadLimit?: Duration;
  /** Shortens default ttls at random by up to this fraction, 0 to less than 1. Default: 0. */
  readonly ttlJitter?: number;
  /** How values are serialized. `json` is human-readable and larger. Default: `msgpack`. */
  readonly serialization?: Serialization;
  /** Encrypts entries in shared stores with AES-256-GCM. Default: off. */
  readonly encryption?: false | EncryptionConfig | EncryptionSettings;
}

/** A table's settings, checked; the ttl in seconds. */
export interface ResolvedTable {
  readonly ttl?: number;
  readonly tags?: readonly string[];
}

/** A configuration with every field checked and present. Frozen; durations in seconds. */
export interface ResolvedConfig {
  readonly kvUrl: string;
  /** Undefined: as in `kvUrl`. */
  readonly username: string | undefined;
  readonly password: string | PasswordFunction | undefined;
  readonly defaultTtl: number;
  readonly keyPrefix: string;
  readonly enableFuzzy: boolean;
  /** Without a prototype, so that a table named `constructor` finds nothing else. */
  readonly tables: Readonly<Record<string, ResolvedTable>>;
  readonly enableMetrics: boolean;
  readonly metricsRetentionDays: number;
  /** Undefined: created from `kvUrl`. */
  readonly backend: Backend | undefined;
  /** Undefined: nothing is reported. */
  readonly metrics: Collector | undefined;
  readonly nearCache: false | Required<NearCacheConfig>;
  readonly operationTimeout: number;
  readonly connectTimeout: number;
  readonly poolSize: number;
  readonly circuitBreaker: { readonly failureThreshold: number; readonly resetTimeout: number };
  readonly compression: false | Required<CompressionConfig>;
  readonly staleIfError: number;
  readonly staleWhileRevalidate: number;
  readonly loadLimit: number;
  readonly ttlJitter: number;
  readonly serialization: Serialization;
  readonly encryption: false | EncryptionSettings;
}

/** The fields the user set, in resolved form; itself a valid CacheConfig. */
export type CheckedConfig = {
  readonly [K in keyof ResolvedConfig]?: Exclude<ResolvedConfig[K], undefined>;
};
