// Options of the cache operations, as the caller passes them.

export interface SetOptions {
  /** Seconds, > 0, to the millisecond; Infinity never expires. Default: the configured `defaultTtl`. */
  readonly ttl?: number;
  /** Labels for invalidateTags. Default: none. */
  readonly tags?: readonly string[];
}

export interface GetOrSetOptions extends SetOptions {
  /** For how many seconds after expiry the stale value may be returned when the load fails. Default: the configured one (0). */
  readonly staleIfError?: number;
  /** For how many seconds after expiry the stale value is returned while a background load refreshes it. Default: the configured one (0). */
  readonly staleWhileRevalidate?: number;
  /** Seconds to wait for the load before an available stale value is returned instead. Default: no limit. */
  readonly softTimeout?: number;
  /** Seconds to wait for the load before the call rejects with OperationTimeoutError; the load itself continues. Default: no limit. */
  readonly hardTimeout?: number;
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
  /** Sets the lifetime, in seconds, depending on what was loaded. */
  setTtl(seconds: number): void;
  /** Adds tags to those of the options, depending on what was loaded. */
  setTags(tags: readonly string[]): void;
  /** Return the value without storing it. */
  skip(): void;
}

/** The separate type of the stale value lets the compiler infer `T` from what the load returns. */
export type LoadAs<T, S> = (context: LoadContext<S>) => T | Promise<T>;

export type Load<T> = LoadAs<T, T>;
