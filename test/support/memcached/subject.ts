// A memcached store as a subject of the contract suite.
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { ContractSubject } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";

/** `config` is what its caches have besides what a case asks for. */
export function memcachedSubject(name: string, url: () => string, config: CacheConfig = {}): ContractSubject {
  const client = (): MemcachedBackend => new MemcachedBackend({ kvUrl: url() });
  return {
    name,
    // Items have 1 MiB with their keys and headers, unless a server is told otherwise.
    offers: { shared: true, scan: false, push: false, maxPayloadBytes: 1_000_000 },
    open: async () => ({
      backend: client(),
      second: async () => client(),
      cache: (backend, asked) => new XCache({ ...asked, ...config, backend }),
      close: async () => {},
    }),
  };
}
