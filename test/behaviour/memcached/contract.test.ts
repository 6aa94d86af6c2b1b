// The contract suite on one real server.
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../../src/testing/index.ts";
import { memcachedSubject } from "../../support/memcached/subject.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";

let server: MemcachedServer;
beforeAll(async () => {
  server = await startMemcached();
});
afterAll(() => server.stop());

backendContract(
  memcachedSubject("memcached on one server", () => server.url),
  { describe, it: it.concurrent },
);
