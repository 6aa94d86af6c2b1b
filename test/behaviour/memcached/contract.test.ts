// The contract suite on one real server.
import { afterAll, beforeAll } from "vitest";
import { backendContract } from "../../../src/testing/index.ts";
import { memcachedSubject } from "../../support/memcached/subject.ts";
import { type MemcachedServer, startMemcached } from "../../support/memcached.ts";
import { SIDE_BY_SIDE } from "../../support/subject.ts";

let server: MemcachedServer;
beforeAll(async () => {
  server = await startMemcached();
});
afterAll(() => server.stop());

backendContract(
  memcachedSubject("memcached on one server", () => server.url),
  SIDE_BY_SIDE,
);
