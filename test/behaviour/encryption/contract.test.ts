// The contract suite with encrypted entries, on Redis with hidden keys; disk: see encryption.test.ts.
// The client is loaded with the test: compiling it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { afterAll, beforeAll } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import { Encryption } from "../../../src/codec/encryption.ts";
import type { Backend } from "../../../src/core/backend.ts";
import type { EncryptionConfig } from "../../../src/core/encryption-settings.ts";
import { SealedBackend } from "../../../src/core/shared/sealed-backend.ts";
import { backendContract } from "../../../src/testing/index.ts";
import { memcachedSubject } from "../../support/memcached/subject.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { SIDE_BY_SIDE, sharedSubject } from "../../support/subject.ts";

let redis: RedisServer;
let memcached: MemcachedServer;
beforeAll(async () => {
  [redis, memcached] = await Promise.all([startRedis(), startMemcached()]);
});
afterAll(() => Promise.all([redis?.stop(), memcached?.stop()]));

const encryption: EncryptionConfig = {
  keys: { old: "a secret that only decrypts", new: "a secret that encrypts" },
  use: "new",
};
/** The suite also reads single records, so it gets the decorated backend. */
const hidden = (backend: Backend): Backend =>
  new SealedBackend(backend, new Encryption({ ...encryption, hideKeys: "old" }));

backendContract(
  memcachedSubject("memcached, encrypted", () => memcached.url, { encryption }),
  SIDE_BY_SIDE,
);
backendContract(
  sharedSubject({
    name: "kv with a near tier and hidden keys",
    offers: { scan: true, push: true },
    client: () => hidden(new KvBackend({ kvUrl: redis.url })),
    config: { nearCache: true },
  }),
  SIDE_BY_SIDE,
);
