// The contract suite on a cluster of six servers.
import { afterAll, beforeAll, describe, it } from "vitest";
import { KvBackend } from "../../../src/backends/kv/backend.ts";
import { backendContract } from "../../../src/testing/index.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";

describe("on a cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  backendContract(
    {
      name: "kv",
      offers: { shared: true, scan: true, push: true },
      open: async () => ({
        backend: new KvBackend({ kvUrl: cluster.url }),
        second: async () => new KvBackend({ kvUrl: cluster.url }),
        close: async () => {},
      }),
    },
    { describe, it: it.concurrent },
  );
});
