// The contract suite on one real server, with and without the near tier.
import { afterAll, beforeAll, describe, it } from "vitest";
import { backendContract } from "../../../src/testing/index.ts";
import { kvSubject } from "../../support/kv/subject.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

const runner = { describe, it: it.concurrent };

backendContract(
  kvSubject("kv on one server", () => server.url),
  runner,
);
backendContract(
  kvSubject("kv with a near tier", () => server.url, { nearCache: true }),
  runner,
);
backendContract(
  kvSubject("kv with three connections", () => server.url, { nearCache: true, poolSize: 3 }),
  runner,
);
