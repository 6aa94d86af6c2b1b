// Cache handlers for Next 15 and 16 that any number of server processes can share.
export type { CacheSource } from "./cache-source.ts";
export { nextCacheHandler } from "./next/incremental.ts";
export type { NextCacheOptions } from "./next/options.ts";
export { nextUseCacheHandler, type UseCacheEntry, type UseCacheHandler } from "./next/use-cache.ts";
