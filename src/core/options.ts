// Options of the cache operations, as the caller passes them.
import type { Duration } from "./duration.ts";

/** One tag or several. */
export type Tags = string | readonly string[];

export interface SetOptions {
  /** Seconds or a text such as "5m", > 0, to the millisecond; Infinity never expires. Default: the configured `defaultTtl`. */
  readonly ttl?: Duration;
  /** Labels for invalidateTags, one or a list. Default: none. */
  readonly tags?: Tags;
}

export interface GetOrSetOptions extends SetOptions {
  /** For how long after expiry the stale value may be returned when the load fails. Default: the configured one (0). */
  readonly staleIfError?: Duration;
  /** For how long after expiry the stale value is returned while a background load refreshes it. Default: the configured one (0). */
  readonly staleWhileRevalidate?: Duration;
  /** How long to wait for the load before an available stale value is returned instead. Default: no limit. */
  readonly softTimeout?: Duration;
  /** How long to wait for the load before the call rejects with OperationTimeoutError; the load itself continues. Default: no limit. */
  readonly hardTimeout?: Duration;
  /** Wait for a load that another process has started. false: load anyway, and store the result only with the lease. Default: true. */
  readonly lock?: boolean;
  /** Load even if a fresh value is stored; it stays readable meanwhile. Default: false. */
  readonly forceLoad?: boolean;
}

/** The argument of a load. */
export interface LoadContext<T> {
  /** Aborts when the cache disconnects. */
  readonly signal: AbortSignal;
  /** The expired value, if one is available. */
  readonly stale: T | undefined;
  /** Sets the lifetime depending on what was loaded. */
  setTtl(ttl: Duration): void;
  /** Adds tags to those of the options, depending on what was loaded. */
  setTags(tags: Tags): void;
  /** Return the value without storing it. */
  skip(): void;
}

/** The separate type of the stale value lets the compiler infer `T` from what the load returns. */
export type LoadAs<T, S> = (context: LoadContext<S>) => T | Promise<T>;

export type Load<T> = LoadAs<T, T>;
