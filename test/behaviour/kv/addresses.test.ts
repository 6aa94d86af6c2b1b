// Every form of address reaches a real server: an entry written through one spelling can be read through the other.
// The client is there with the test: to compile it within the deadline of a first call would take too long on a busy machine.
import "../../../src/backends/kv/client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { XCache } from "../../../src/xcache.ts";
import { type Certificates, makeCertificates } from "../../support/certificate.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisCli } from "../../support/redis-cli.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { type RedisSentinel, startSentinel } from "../../support/redis-sentinel.ts";

let certificates: Certificates;
let plain: RedisServer;
let secure: RedisServer;
let cluster: RedisCluster;
let secureCluster: RedisCluster;
let sentinel: RedisSentinel;

beforeAll(async () => {
  certificates = await makeCertificates();
  const tls = { tls: certificates };
  [plain, secure, cluster, secureCluster, sentinel] = await Promise.all([
    startRedis({ unixsocket: true }),
    startRedis(tls),
    startCluster({ replicas: 0 }),
    startCluster({ replicas: 0, redis: { ...tls, args: ["--tls-cluster", "yes"] } }),
    startSentinel(),
  ]);
  // Long enough that a busy machine does not make the master look dead.
  const patience = ["SENTINEL", "SET", "main", "down-after-milliseconds", "30000"];
  await Promise.all(sentinel.sentinels.map(({ port }) => redisCli(port, {}, patience)));
});
afterAll(async () => {
  await Promise.all([plain, secure, cluster, secureCluster, sentinel].map((each) => each?.stop()));
});

const trusting = (): string => `tls_ca_file=${encodeURIComponent(certificates.caFile)}`;
/** The hosts of an address, without scheme, path and options. */
const hostsOf = (url: string): string => url.replace(/^[^:]+:\/\//, "").replace(/[/?].*$/, "");

let written = 0;

/** Writes through one address and reads through the other; returns the name of the record. */
async function roundTrip(address: string, other: string): Promise<string> {
  const [keyPrefix, value] = [`addresses-${++written}`, { at: written, bytes: Buffer.from([0, 13, 10]) }];
  await using writer = new XCache({ kvUrl: address, keyPrefix });
  await using reader = new XCache({ kvUrl: other, keyPrefix });
  await writer.set("k", value, { tags: ["t"] });
  expect(await writer.get("k")).toEqual(value);
  expect(await reader.get("k")).toEqual(value);
  await reader.invalidateTags("t");
  expect(await reader.get("k")).toBeUndefined();
  await writer.set("k", "again");
  expect(await reader.get("k")).toBe("again");
  return `${keyPrefix}:k`;
}

/** Expects the record in this database of the server, and not in the default one. */
async function expectIn(server: RedisServer, database: number, name: string): Promise<void> {
  const count = (number: number): Promise<string> => server.cli("-n", String(number), "EXISTS", name);
  expect(await count(database)).toBe("1");
  if (database !== 0) expect(await count(0)).toBe("0");
}

describe("one server", () => {
  test.each([
    ["redis://", "valkey://", "", 0],
    ["valkey://", "redis://", "", 0],
    ["redis:// with a database", "valkey://", "/4", 4],
    ["valkey:// with a database", "redis://", "/5", 5],
    ["valkey:// with a database as an option", "redis://", "?db=6", 6],
  ])("%s", async (form, otherScheme, rest, database) => {
    const place = `127.0.0.1:${plain.port}${rest}`;
    const [scheme] = form.split(" ");
    const name = await roundTrip(`${scheme}${place}`, `${otherScheme}${place}`);
    await expectIn(plain, database, name);
  });

  test.each([
    ["rediss://", "valkeys://", "", 0],
    ["valkeys://", "rediss://", "", 0],
    ["valkeys:// with a database", "rediss://", "/7", 7],
  ])("%s", async (form, otherScheme, rest, database) => {
    const place = `localhost:${secure.port}${rest}?${trusting()}`;
    const [scheme] = form.split(" ");
    const name = await roundTrip(`${scheme}${place}`, `${otherScheme}${place}`);
    await expectIn(secure, database, name);
  });

  test.each([
    ["unix://", "", 0],
    ["unix:// with a database", "?db=8", 8],
  ])("%s", async (_form, rest, database) => {
    const name = await roundTrip(`${plain.unixUrl}${rest}`, `valkey://127.0.0.1:${plain.port}${rest}`);
    await expectIn(plain, database, name);
  });
});

describe("a cluster", () => {
  test.each([
    ["redis+cluster://", "valkey+cluster://", () => cluster, () => ""],
    ["valkey+cluster://", "redis+cluster://", () => cluster, () => ""],
    ["rediss+cluster://", "valkeys+cluster://", () => secureCluster, () => `?${trusting()}`],
    ["valkeys+cluster://", "rediss+cluster://", () => secureCluster, () => `?${trusting()}`],
  ])("%s", async (scheme, otherScheme, nodes, options) => {
    const hosts = hostsOf(nodes().url);
    // One of its servers is enough: it knows the others.
    const [first] = hosts.split(",");
    const name = await roundTrip(`${scheme}${hosts}${options()}`, `${otherScheme}${first}${options()}`);
    expect(await nodes().nodes[0]!.cli("-c", "EXISTS", name)).toBe("1");
  });
});

describe("a master behind sentinels", () => {
  test.each([
    ["redis+sentinel://", "valkey+sentinel://", "/main", 0],
    ["valkey+sentinel://", "redis+sentinel://", "/main", 0],
    ["redis+sentinel:// with a database", "valkey+sentinel://", "/main/9", 9],
    ["valkey+sentinel:// with a database", "redis+sentinel://", "/main/10", 10],
    ["valkey+sentinel:// with a database as an option", "redis+sentinel://", "/main?db=11", 11],
  ])("%s", async (form, otherScheme, rest, database) => {
    const hosts = hostsOf(sentinel.url);
    const [scheme] = form.split(" ");
    const name = await roundTrip(`${scheme}${hosts}${rest}`, `${otherScheme}${hosts}${rest}`);
    await expectIn(await sentinel.master(), database, name);
  });
});
