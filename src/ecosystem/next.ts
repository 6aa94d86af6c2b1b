// The cache handlers of Next 16, for any number of server processes on one store.
export type { CacheSource } from "./cache-source.ts";
export { nextCacheHandler } from "./next/incremental.ts";
export type { NextCacheOptions } from "./next/options.ts";
export { nextUseCacheHandler } from "./next/use-cache.ts";
