// A kv store as a subject of the contract suite.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { ContractSubject } from "../../../src/testing/index.ts";
import { XCache } from "../../../src/xcache.ts";

/** `config` is what its caches have besides what a case asks for. */
export function kvSubject(name: string, url: () => string, config: CacheConfig = {}): ContractSubject {
  const client = (): KvBackend => new KvBackend({ kvUrl: url() });
  return {
    name,
    offers: { shared: true, scan: true, push: true },
    open: async () => ({
      backend: client(),
      second: async () => client(),
      cache: (backend, asked) => new XCache({ ...asked, ...config, backend }),
      close: async () => {},
    }),
  };
}
