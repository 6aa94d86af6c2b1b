// Several links to one server: when another one takes its place, none of them stays behind.
import { expect, test } from "vitest";
import { KvNode } from "../../../src/backends/kv/node.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { nodeHost } from "./node-host.ts";

test("all links leave a server as soon as one has met its successor, also by way of a replica", async () => {
  await using former = await startRedis();
  await using next = await startRedis();
  await next.cli("REPLICAOF", "127.0.0.1", String(former.port));
  let where = { host: "127.0.0.1", port: former.port };
  const node = new KvNode(() => where, { ...nodeHost(), poolSize: 2 });
  const ports = (): unknown[] =>
    node.links.map(({ connection }) => (connection?.endpoint as typeof where | undefined)?.port);
  try {
    await node.connect();
    where = { host: "127.0.0.1", port: next.port };
    node.links[1]!.connection!.destroy(new ConnectionError("lost"));
    // It is a replica still, and refused.
    await expect(node.links[1]!.connect()).rejects.toThrow("is a replica");
    expect(ports()).toEqual([former.port, undefined]);
    await next.cli("REPLICAOF", "NO", "ONE");
    await until(() => ports().every((port) => port === next.port), { what: "both are on the successor" });
  } finally {
    node.close();
  }
});
