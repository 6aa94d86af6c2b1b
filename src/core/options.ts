// Options of the cache operations, as a caller writes them.

export interface SetOptions {
  /** Seconds, > 0, to the millisecond; Infinity never expires. Default: the configured `defaultTtl`. */
  readonly ttl?: number;
  /** Labels for invalidateTags. Default: none. */
  readonly tags?: readonly string[];
}

export interface GetOrSetOptions extends SetOptions {
  /** For how many seconds after expiry the old value may answer when the load fails. Default: the configured one (0). */
  readonly staleIfError?: number;
  /** For how many seconds after expiry the old value answers at once while one load refreshes it. Default: the configured one (0). */
  readonly staleWhileRevalidate?: number;
  /** Seconds to wait for the load before a stale value at hand is returned instead. Default: no limit. */
  readonly softTimeout?: number;
  /** Seconds to wait for the load before the call rejects with OperationTimeoutError; the load itself goes on. Default: no limit. */
  readonly hardTimeout?: number;
  /** Wait for a load that another process has begun. false: run one's own, store it only if it holds the lease. Default: true. */
  readonly lock?: boolean;
  /** Load even though a fresh value is stored (it stays readable meanwhile). Default: false. */
  readonly forceLoad?: boolean;
}

/** What a load is given. */
export interface LoadContext<T> {
  /** Aborts when the cache disconnects. */
  readonly signal: AbortSignal;
  /** The expired value, when one is at hand. */
  readonly stale: T | undefined;
  /** Decides the lifetime, in seconds, from what was loaded. */
  setTtl(seconds: number): void;
  /** Decides the tags from what was loaded; they are added to those of the options. */
  setTags(tags: readonly string[]): void;
  /** Return the value without storing it. */
  skip(): void;
}

/** A second type for what is stale lets the compiler infer the first from what is returned. */
export type LoadAs<T, S> = (context: LoadContext<S>) => T | Promise<T>;

export type Load<T> = LoadAs<T, T>;
