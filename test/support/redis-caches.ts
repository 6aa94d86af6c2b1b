// Caches on one real server: it runs as long as the tests of a file, and each test has a prefix of its own.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../src/backends/kv/client.ts";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import type { CacheConfig } from "../../src/config/types.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { cacheWithClock } from "../../src/testing/index.ts";
import type { XCache } from "../../src/xcache.ts";
import { type RedisOptions, type RedisServer, startRedis } from "./redis.ts";

export interface RedisCaches {
  readonly server: RedisServer;
  /** What the keys of this test's caches begin with. */
  readonly prefix: string;
  /** Closed at the end of the test. */
  open(config?: CacheConfig, clock?: Clock): XCache;
  /** Closes those that are open, before the end of the test. */
  close(): Promise<void>;
}

/** To be called once in a test file; `config` is what its caches have unless a test says otherwise. */
export function redisCaches(config: CacheConfig, options?: RedisOptions): RedisCaches {
  let server: RedisServer;
  let opened: XCache[] = [];
  let tests = 0;
  const caches: RedisCaches = {
    get server() {
      return server;
    },
    get prefix() {
      return `test-${tests}`;
    },
    open(own = {}, clock = systemClock) {
      const places = { kvUrl: server.url, keyPrefix: caches.prefix };
      const cache = cacheWithClock({ ...places, ...config, ...own }, clock);
      opened.push(cache);
      return cache;
    },
    async close() {
      const closing = opened;
      opened = [];
      for (const cache of closing) await cache.disconnect();
    },
  };
  beforeAll(async () => {
    server = await startRedis(options);
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    tests++;
  });
  afterEach(() => caches.close());
  return caches;
}
