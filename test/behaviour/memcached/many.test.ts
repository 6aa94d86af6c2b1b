// Reading many keys at once reads their namespace's stamp once, not once per key.
import { expect, test } from "vitest";
import { MemcachedBackend } from "../../../src/backends/memcached/backend.ts";
import { XCache } from "../../../src/xcache.ts";
import { exchange } from "../../support/exchange.ts";
import { startMemcached } from "../../support/memcached.ts";

test("getMany reads every entry and the stamp, and nothing twice", async () => {
  const server = await startMemcached();
  const cache = new XCache({ backend: new MemcachedBackend({ kvUrl: server.url }), operationTimeout: 5 });
  try {
    const keys = Array.from({ length: 200 }, (_, at) => `k${at}`);
    await cache.setMany(Object.fromEntries(keys.map((key, at) => [key, at])));
    const reads = async (): Promise<number> => {
      const statistics = await exchange({ port: server.port }, "stats\r\n", (reply) =>
        reply.endsWith("END\r\n"),
      );
      return Number(/STAT cmd_get (\d+)/.exec(statistics)?.[1]);
    };
    const before = await reads();
    expect((await cache.getMany(keys)).size).toBe(200);
    expect((await reads()) - before).toBeLessThan(210);
    await cache.clear();
    expect((await cache.getMany(keys)).size).toBe(0);
  } finally {
    await cache.disconnect();
    await server.stop();
  }
});
