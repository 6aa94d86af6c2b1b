// A store for cache-manager 7, which uses Keyv stores.
import type { Keyv } from "keyv";
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { requireNamespace } from "../core/keys.ts";
import { requiredPackage } from "../core/peer-package.ts";
import type { CacheSource } from "./cache-source.ts";
import { XCacheKeyvStore } from "./keyv.ts";

export type { CacheSource } from "./cache-source.ts";

export interface CacheManagerStoreOptions {
  /** The namespace of the cache to use, which `clear()` empties. Default: `cache-manager`. */
  readonly namespace?: string;
  /** Lifetime in milliseconds if neither the call nor `createCache` sets one. Default: no expiry. */
  readonly ttl?: number;
  /**
   * Whether writes, deletions and `wrap` reject when the store fails; reads of cache-manager never do. Default: false: the
   * store counts as empty, and only its `error` event reports a failed deletion.
   */
  readonly throwOnErrors?: boolean;
}

/** Keyv declares its class separately for import and require, and the two types are incompatible: accept either. */
type AnyKeyv = Pick<Keyv, "get" | "set" | "delete" | "clear" | "disconnect">;

/**
 * `createCache({ stores: [cacheManagerStore(cache)] })`. Values are stored as they are, not as JSON.
 * Throws MissingPeerError without the package `keyv`, ConfigError for an invalid configuration or invalid options.
 */
export function cacheManagerStore<Store extends AnyKeyv = Keyv>(
  source: CacheSource,
  options: CacheManagerStoreOptions = {},
): Store {
  requireOptions(options, ["namespace", "ttl", "throwOnErrors"]);
  const { namespace = "cache-manager", ttl } = options;
  const throwOnErrors = requireFlag(options.throwOnErrors, "throwOnErrors", false);
  requireNamespace(namespace);
  const library = requiredPackage("keyv", "A store for cache-manager", "5.0.0") as typeof import("keyv");
  const keyv = new library.Keyv({
    store: new XCacheKeyvStore(source, { throwOnErrors }),
    namespace,
    // The store already maps the Keyv namespace to a namespace of the cache.
    useKeyPrefix: false,
    throwOnErrors,
    ...(ttl === undefined ? {} : { ttl }),
  });
  keyv.serialize = undefined;
  keyv.deserialize = undefined;
  return keyv as AnyKeyv as Store;
}
