// The contract suite on a cluster of six servers, and what only a cluster can get wrong.
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { KvBackend } from "../../../../src/backends/kv/backend.ts";
import { ClusterServers } from "../../../../src/backends/kv/cluster/cluster.ts";
import { slotOf } from "../../../../src/backends/kv/cluster/slots.ts";
import { keyArgument } from "../../../../src/backends/wire/key-bytes.ts";
import { sampleEntry } from "../../../../src/testing/contract/sample.ts";
import { backendContract } from "../../../../src/testing/index.ts";
import { XCache } from "../../../../src/xcache.ts";
import { nodeHost } from "../../../support/kv/node-host.ts";
import { opened } from "../../../support/kv/opened.ts";
import { kvSubject } from "../../../support/kv/subject.ts";
import { type RedisCluster, startCluster } from "../../../support/redis-cluster.ts";

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.stop());

const runner = { describe, it: it.concurrent };

backendContract(
  kvSubject("kv on a cluster", () => cluster.url),
  runner,
);
backendContract(
  kvSubject("kv on a cluster with a near tier and two connections to each server", () => cluster.url, {
    nearCache: true,
    poolSize: 2,
  }),
  runner,
);

/** Keys whose braces, or whose bytes, determine their slot. */
const AWKWARD_KEYS = [
  "plain",
  "{tag}",
  "{tag}:1",
  "a{tag}b",
  "a{}b",
  "a{}{tag}",
  "{",
  "}",
  "}{",
  "{}",
  "{{tag}}",
  "{unclosed",
  "unopened}",
  "a{b}c{d}",
  "ключ:{ярлык}",
  "键{标签}",
  "{😀}:😀",
  "\ud83d{\ude00}",
  "{\ud83d}",
  "lone\udc00surrogate",
  "\ufffd{\ufffd}",
  "a b\r\n\0{c\0d}",
  "~|z\x7f",
];

test.concurrent("every key is sent to the slot that the servers find it in", async () => {
  const servers = new ClusterServers(
    cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
    nodeHost({ operationTimeoutMs: 5_000, connectTimeoutMs: 5_000 }),
  );
  try {
    const [node] = await servers.masters();
    const link = node!.links[0]!;
    for (const key of AWKWARD_KEYS) {
      expect(await link.command("CLUSTER", "KEYSLOT", keyArgument(key)), key).toBe(slotOf(key));
    }
  } finally {
    servers.close();
  }
});

test.concurrent("keys with braces, of any script and of broken text are written, read, scanned and taken", async () => {
  await using backend = opened(cluster.url, { operationTimeoutMs: 5_000, poolSize: 2 });
  const items = AWKWARD_KEYS.map((name) => {
    const key = `awkward:${name}`;
    return { key, record: sampleEntry(key), lifetimeMs: 60_000 };
  });
  const keys = items.map(({ key }) => key);
  await backend.writeMany(items);
  const read = await backend.readMany(keys);
  expect(read.map((record) => record?.version)).toEqual(items.map(({ record }) => record.version));
  const scanned = new Set<string>();
  for await (const batch of backend.scan("awkward:")) for (const { key } of batch) scanned.add(key);
  expect([...scanned].sort()).toEqual([...keys].sort());
  const taken = await backend.takeMany(keys);
  expect(taken.map((record) => record?.version)).toEqual(items.map(({ record }) => record.version));
  expect((await backend.readMany(keys)).filter((record) => record !== undefined)).toEqual([]);
});

test.concurrent.each(["spread", "one{slot}each"])(
  "getMany, delete, invalidateTags, clear and keys reach every slot under the prefix %s",
  async (keyPrefix) => {
    await using cache = new XCache({ backend: new KvBackend({ kvUrl: cluster.url }), keyPrefix });
    const names = Array.from({ length: 300 }, (_, at) => `item:${at}`);
    await cache.setMany(
      names.map((name, at) => [name, at] as const),
      { tags: ["all"] },
    );
    await cache.set("{kept}", "kept", { tags: ["other"] });
    expect((await cache.getMany(names)).size).toBe(300);
    expect(await keysOf(cache)).toHaveLength(301);
    expect(await cache.delete(names.slice(0, 100))).toBe(100);
    expect((await cache.getMany(names)).size).toBe(200);
    await cache.invalidateTags("all");
    expect((await cache.getMany(names)).size).toBe(0);
    expect(await keysOf(cache)).toEqual(["{kept}"]);
    await cache.clear();
    expect(await cache.get("{kept}")).toBeUndefined();
    expect(await keysOf(cache)).toEqual([]);
  },
);

async function keysOf(cache: XCache): Promise<string[]> {
  const found: string[] = [];
  for await (const key of cache.keys()) found.push(key);
  return found;
}
