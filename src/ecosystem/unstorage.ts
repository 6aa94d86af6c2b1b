// A driver for unstorage 1.
import type { Driver, TransactionOptions } from "unstorage";
import { requireOptions } from "../core/arguments.ts";
import type { Duration } from "../core/duration.ts";
import { ttlToMs } from "../core/entry-options.ts";
import type { XCache } from "../xcache.ts";
import { type CacheSource, resolveCacheSource } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface UnstorageDriverOptions {
  /** The namespace of the cache that the driver uses. Default: `unstorage`. */
  readonly namespace?: string;
  /** Lifetime if `setItem` does not set one, in seconds or as a text such as "5m"; 0 means no expiry. Default: no expiry. */
  readonly ttl?: Duration;
}

/** The part of an operation's options that is used. */
interface Lifetime extends TransactionOptions {
  /** Seconds or a text such as "5m". */
  readonly ttl?: Duration;
}

const DELETE_BATCH = 1_000;

/** As in unstorage's own drivers 0 means no expiry, even if the driver has a default ttl. */
const lifetimeOf = (ttl: Duration | undefined): Duration =>
  ttl === undefined || ttl === 0 ? Number.POSITIVE_INFINITY : ttl;

/** The current keys, each once. */
async function keysUnder(cache: XCache, base: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const key of cache.keys()) if (key.startsWith(base)) found.add(key);
  return [...found];
}

/**
 * `createStorage({ driver: unstorageDriver(cache) })`. Raw items may be any value the cache can store, including bytes.
 * Operations reject when the store fails. There is deliberately no `setItems`: unstorage then sets each item with its own
 * ttl, and the writes still reach the store in one batch. Throws ConfigError for an invalid configuration or invalid options.
 */
export function unstorageDriver(
  source: CacheSource,
  options: UnstorageDriverOptions = {},
): Driver<UnstorageDriverOptions, XCache> {
  requireOptions(options, ["namespace", "ttl"]);
  const defaultTtl = lifetimeOf(options.ttl);
  ttlToMs(defaultTtl, "ttl");
  const resolved = resolveCacheSource(source);
  const cache = resolved.cache.namespace(options.namespace ?? "unstorage");
  const get = async (key: string) => (await cache.get<string>(key)) ?? null;
  const set = (key: string, value: unknown, given?: Lifetime) =>
    cache.set(key, value, { ttl: lifetimeOf(given?.ttl ?? defaultTtl) });

  return {
    name: "xcache",
    flags: { ttl: true },
    options,
    getInstance: () => cache,
    hasItem: (key) => cache.exists(key),
    getItem: get,
    getItemRaw: get,
    async getItems(items) {
      const found = await cache.getMany<string>(items.map(({ key }) => key));
      return items.map(({ key }) => ({ key, value: found.get(key) ?? null }));
    },
    setItem: set,
    setItemRaw: set,
    async removeItem(key) {
      await cache.delete(key);
    },
    async getMeta(key) {
      const ttl = await cache.ttl(key);
      return ttl === undefined || ttl === Number.POSITIVE_INFINITY ? null : { ttl };
    },
    getKeys: (base = "") => keysUnder(cache, base),
    async clear(base = "") {
      if (base === "") return cache.clear();
      const keys = await keysUnder(cache, base);
      for (let at = 0; at < keys.length; at += DELETE_BATCH) {
        await cache.delete(keys.slice(at, at + DELETE_BATCH));
      }
    },
    dispose: () => resolved.release(),
  };
}
