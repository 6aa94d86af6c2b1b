// A kv store as a subject of the contract suite.
// The client is loaded with the test: compiling it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import type { CacheConfig } from "../../../src/config/types.ts";
import type { ContractSubject } from "../../../src/testing/index.ts";
import { sharedSubject } from "../subject.ts";

/** `config` is what its caches have besides what a case asks for. */
export function kvSubject(name: string, url: () => string, config: CacheConfig = {}): ContractSubject {
  const client = (): KvBackend => new KvBackend({ kvUrl: url() });
  return sharedSubject({ name, offers: { scan: true, push: true }, client, config });
}
