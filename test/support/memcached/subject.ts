// A memcached store as a subject of the contract suite.
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { ContractSubject } from "../../../src/testing/index.ts";
import { sharedSubject } from "../subject.ts";

/** Items have 1 MiB with their keys and headers, unless a server is configured otherwise. */
const OFFERS = { scan: false, push: false, maxPayloadBytes: 1_000_000 };

/** `config` is what its caches have besides what a case asks for. */
export function memcachedSubject(name: string, url: () => string, config: CacheConfig = {}): ContractSubject {
  const client = (): MemcachedBackend => new MemcachedBackend({ kvUrl: url() });
  return sharedSubject({ name, offers: OFFERS, client, config });
}
