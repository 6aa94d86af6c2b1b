// The contract suite on a ring of three real servers, with two connections to each.
import { afterAll, beforeAll } from "vitest";
import { backendContract } from "../../../src/testing/index.ts";
import { memcachedSubject } from "../../support/memcached/subject.ts";
import { type MemcachedRing, startMemcachedRing } from "../../support/memcached.ts";
import { SIDE_BY_SIDE } from "../../support/subject.ts";

let ring: MemcachedRing;
beforeAll(async () => {
  ring = await startMemcachedRing(3);
});
afterAll(() => ring.stop());

backendContract(
  memcachedSubject("memcached on a ring of three", () => ring.url, { poolSize: 2 }),
  SIDE_BY_SIDE,
);
