// Caches on the memory store for one test, on a manual clock.
import { onTestFinished } from "vitest";
import { MemoryBackend, type MemoryBackendOptions } from "../../../src/backends/memory/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";

export interface MemoryCache {
  readonly cache: XCache;
  readonly clock: ManualClock;
  /** Errors reported without a listener. */
  readonly errors: Error[];
}

/** A separate cache, disconnected when the test ends. */
export function memoryCache(config: CacheConfig = {}, options: MemoryBackendOptions = {}): MemoryCache {
  const clock = new ManualClock();
  const cache = cacheWithClock({ backend: new MemoryBackend(options), ...config }, clock);
  const errors: Error[] = [];
  cache.on("error", ({ error }) => errors.push(error));
  onTestFinished(() => cache.disconnect());
  return { cache, clock, errors };
}

export async function listed<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
