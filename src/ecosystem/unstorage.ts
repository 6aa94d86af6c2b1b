// A driver for unstorage 1.
import type { Driver, TransactionOptions } from "unstorage";
import { requireOptions } from "../core/arguments.ts";
import { ttlToMs } from "../core/entry-options.ts";
import type { XCache } from "../xcache.ts";
import { type CacheSource, holdCache } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface UnstorageDriverOptions {
  /** The part of the cache that the driver uses. Default: `unstorage`. */
  readonly namespace?: string;
  /** Lifetime in seconds where `setItem` does not say one; 0: for ever. Default: for ever. */
  readonly ttl?: number;
}

/** What is used of the options of an operation. */
interface Lifetime extends TransactionOptions {
  /** Seconds. */
  readonly ttl?: number;
}

const DELETED_AT_ONCE = 1_000;

/** As with the drivers of unstorage, 0 is no limit: an item that says so outlives what is usual. */
const lifetimeOf = (ttl: number | undefined): number =>
  ttl === undefined || ttl === 0 ? Number.POSITIVE_INFINITY : ttl;

/** The keys as of now, each once. */
async function keysUnder(space: XCache, base: string): Promise<string[]> {
  const found = new Set<string>();
  for await (const key of space.keys()) if (key.startsWith(base)) found.add(key);
  return [...found];
}

/**
 * `createStorage({ driver: unstorageDriver(cache) })`. Raw items are any value that the cache can carry, bytes among
 * them. Operations reject when the store fails. There is no `setItems`: unstorage then sets one by one, each with its own
 * lifetime, which go to the store together. Throws ConfigError for a configuration or options that cannot be.
 */
export function unstorageDriver(
  source: CacheSource,
  options: UnstorageDriverOptions = {},
): Driver<UnstorageDriverOptions, XCache> {
  requireOptions(options, ["namespace", "ttl"]);
  const usual = lifetimeOf(options.ttl);
  ttlToMs(usual, "ttl");
  const held = holdCache(source);
  const space = held.cache.namespace(options.namespace ?? "unstorage");
  const get = async (key: string) => (await space.get<string>(key)) ?? null;
  const set = (key: string, value: unknown, given?: Lifetime) =>
    space.set(key, value, { ttl: lifetimeOf(given?.ttl ?? usual) });

  return {
    name: "xcache",
    flags: { ttl: true },
    options,
    getInstance: () => space,
    hasItem: (key) => space.exists(key),
    getItem: get,
    getItemRaw: get,
    async getItems(items) {
      const found = await space.getMany<string>(items.map(({ key }) => key));
      return items.map(({ key }) => ({ key, value: found.get(key) ?? null }));
    },
    setItem: set,
    setItemRaw: set,
    async removeItem(key) {
      await space.delete(key);
    },
    async getMeta(key) {
      const ttl = await space.ttl(key);
      return ttl === undefined || ttl === Number.POSITIVE_INFINITY ? null : { ttl };
    },
    getKeys: (base = "") => keysUnder(space, base),
    async clear(base = "") {
      if (base === "") return space.clear();
      const keys = await keysUnder(space, base);
      for (let at = 0; at < keys.length; at += DELETED_AT_ONCE) {
        await space.delete(keys.slice(at, at + DELETED_AT_ONCE));
      }
    },
    dispose: () => held.release(),
  };
}
