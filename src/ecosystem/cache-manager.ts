// A store for cache-manager 7, which takes stores of Keyv.
import type { Keyv } from "keyv";
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { requireNamespace } from "../core/keys.ts";
import { requiredPackage } from "../metrics/peer-package.ts";
import type { CacheSource } from "./cache-source.ts";
import { XCacheKeyvStore } from "./keyv.ts";

export type { CacheSource } from "./cache-source.ts";

export interface CacheManagerStoreOptions {
  /** What `clear()` empties. Default: `cache-manager`. */
  readonly namespace?: string;
  /** Lifetime in milliseconds where neither the call nor `createCache` says one. Default: for ever. */
  readonly ttl?: number;
  /**
   * Whether writes, deletions and `wrap` reject when the store fails; the reads of cache-manager never do. Default: false,
   * the store counts as empty, and only its `error` event tells of a deletion that was not made.
   */
  readonly throwOnErrors?: boolean;
}

/** Keyv declares its class once for import and once for require, and takes neither for the other: either will do. */
type AnyKeyv = Pick<Keyv, "get" | "set" | "delete" | "clear" | "disconnect">;

/**
 * `createCache({ stores: [cacheManagerStore(cache)] })`. Values are kept as they are, not as JSON. Throws
 * MissingPeerError without the package `keyv`, ConfigError for a configuration or options that cannot be.
 */
export function cacheManagerStore<Store extends AnyKeyv = Keyv>(
  source: CacheSource,
  options: CacheManagerStoreOptions = {},
): Store {
  requireOptions(options, ["namespace", "ttl", "throwOnErrors"]);
  const { namespace = "cache-manager", ttl } = options;
  const throwOnErrors = requireFlag(options.throwOnErrors, "throwOnErrors", false);
  requireNamespace(namespace);
  const library = requiredPackage("keyv", "A store for cache-manager") as typeof import("keyv");
  const keyv = new library.Keyv({
    store: new XCacheKeyvStore(source, { throwOnErrors }),
    namespace,
    // The namespace is the store's own part of the cache already.
    useKeyPrefix: false,
    throwOnErrors,
    ...(ttl === undefined ? {} : { ttl }),
  });
  keyv.serialize = undefined;
  keyv.deserialize = undefined;
  return keyv as AnyKeyv as Store;
}
