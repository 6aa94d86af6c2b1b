// Server locations: cluster nodes, servers behind NAT, sentinels with TLS of their own; and the options of a connection.
import "../../../src/backends/kv/client.ts";
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { slotOf } from "../../../src/backends/kv/cluster/slots.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { type Certificates, makeCertificates } from "../../support/certificate.ts";
import {
  beginMove,
  endMove,
  type Move,
  moveKeys,
  seats,
  timesAnswered,
} from "../../support/kv/cluster-layout.ts";
import { bulk, FakeServer, greet, sentinelFor } from "../../support/kv/fake-server.ts";
import { opened } from "../../support/kv/opened.ts";
import { failure, works } from "../../support/opened.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type RedisCluster, startCluster } from "../../support/redis-cluster.ts";
import { until } from "../../support/until.ts";

describe("a cluster", () => {
  /** Its servers announce a name that cannot be resolved. */
  const HIDDEN = "node.cluster.invalid";
  let cluster: RedisCluster;

  beforeAll(async () => {
    const args = ["--cluster-announce-hostname", HIDDEN, "--cluster-preferred-endpoint-type", "hostname"];
    cluster = await startCluster({ replicas: 0, redis: { args } });
  });
  afterAll(() => cluster?.stop());

  async function moveOf(slot: number): Promise<Move> {
    const masters = await seats(cluster);
    return {
      slot,
      from: masters.find((seat) => seat.holds(slot))!,
      to: masters.find((seat) => !seat.holds(slot))!,
    };
  }

  const natMap = (): string =>
    cluster.nodes.map(({ port }) => `${HIDDEN}:${port}=127.0.0.1:${port}`).join(",");

  it("is rejected by redis://, with an error that names the right address", async () => {
    await using backend = opened(cluster.nodes[0]!.url);
    const error = await failure(backend.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("is a node of a cluster");
    expect(error.hint).toContain(`redis+cluster://127.0.0.1:${cluster.nodes[0]!.port}`);
  });

  it("behind NAT is reached through nat_map, redirections included", async () => {
    await using lost = opened(cluster.url, { connectTimeoutMs: 500 });
    expect(await failure(lost.connect())).toBeInstanceOf(ConnectionError);
    // Its clock stands still, so it does not refresh the topology on its own.
    await using backend = opened(`${cluster.url}?nat_map=${natMap()}`, { clock: new ManualClock() });
    await backend.connect();
    for (const key of ["a", "b", "c", "d", "e", "f"]) expect(await works(backend, key)).toBe(true);
    const found: string[] = [];
    for await (const batch of backend.scan("")) found.push(...batch.map(({ key }) => key));
    expect(found.sort()).toEqual(["a", "b", "c", "d", "e", "f"]);
    // A slot that moves without this client's knowledge: its command is answered with MOVED to the announced name.
    const move = await moveOf(slotOf("a"));
    await beginMove(move);
    await moveKeys(move);
    const moved = await timesAnswered(cluster, "MOVED");
    await endMove(cluster, move);
    expect(await works(backend, "a")).toBe(true);
    expect(await timesAnswered(cluster, "MOVED")).toBeGreaterThan(moved);
  });
});

describe("sentinels", () => {
  let server: RedisServer;
  let ours: Certificates;
  let strangers: Certificates;

  beforeAll(async () => {
    [server, ours, strangers] = await Promise.all([
      startRedis({ requirepass: "data-secret" }),
      makeCertificates(),
      makeCertificates(),
    ]);
  });
  afterAll(() => server?.stop());

  const secured = ({ certFile, keyFile }: Certificates) => ({
    tls: { cert: readFileSync(certFile), key: readFileSync(keyFile) },
  });

  it("that name a master behind NAT are understood through nat_map", async () => {
    await using sentinel = await FakeServer.start(sentinelFor(6379, "10.255.0.9"));
    const url = `redis+sentinel://:data-secret@127.0.0.1:${sentinel.port}/main`;
    await using backend = opened(`${url}?nat_map=10.255.0.9:6379=127.0.0.1:${server.port}`);
    expect(await works(backend)).toBe(true);
    // So is the announcement of a new master.
    await using other = await startRedis({ requirepass: "data-secret" });
    await using switching = opened(
      `${url}?nat_map=10.255.0.9:6379=127.0.0.1:${server.port},10.255.0.10:6379=127.0.0.1:${other.port}`,
    );
    expect(await works(switching)).toBe(true);
    const subscribers = sentinel.present.filter(({ commands }) =>
      commands.some(([name]) => name === "SUBSCRIBE"),
    );
    sentinel.script = sentinelFor(6379, "10.255.0.10");
    const words = "main 10.255.0.9 6379 10.255.0.10 6379";
    for (const subscriber of subscribers)
      subscriber.say(`>3\r\n+message\r\n${bulk("+switch-master")}${bulk(words)}`);
    await until(
      async () => (await works(switching, "switched")) && (await other.cli("EXISTS", "switched")) === "1",
      {
        what: "the other master is used",
      },
    );
  });

  it("may have TLS and an authority of their own in front of plain servers", async () => {
    await using sentinel = await FakeServer.start(sentinelFor(server.port), secured(strangers));
    const url = `redis+sentinel://:data-secret@localhost:${sentinel.port}/main?sentinel_tls=true`;
    await using backend = opened(`${url}&sentinel_tls_ca_file=${encodeURIComponent(strangers.caFile)}`);
    expect(await works(backend)).toBe(true);
    await using distrusting = opened(`${url}&sentinel_tls_ca_file=${encodeURIComponent(ours.caFile)}`);
    expect((await failure(distrusting.connect())).message).toMatch(/certificate/);
    await using trusting = opened(`${url}&sentinel_tls_verify=false`);
    expect(await works(trusting)).toBe(true);
  });

  it("may be plain in front of servers with TLS", async () => {
    await using master = await startRedis({ tls: ours, requirepass: "data-secret" });
    await using sentinel = await FakeServer.start(sentinelFor(master.port, "localhost"));
    const ca = encodeURIComponent(ours.caFile);
    await using backend = opened(
      `rediss+sentinel://:data-secret@127.0.0.1:${sentinel.port}/main?tls_ca_file=${ca}&sentinel_tls=false`,
    );
    expect(await works(backend)).toBe(true);
  });

  it("may have another authority than servers with TLS", async () => {
    await using master = await startRedis({ tls: ours, requirepass: "data-secret" });
    await using sentinel = await FakeServer.start(sentinelFor(master.port, "localhost"), secured(strangers));
    const [ca, theirs] = [encodeURIComponent(ours.caFile), encodeURIComponent(strangers.caFile)];
    await using backend = opened(
      `rediss+sentinel://:data-secret@localhost:${sentinel.port}/main?tls_ca_file=${ca}&sentinel_tls_ca_file=${theirs}`,
    );
    expect(await works(backend)).toBe(true);
  });
});

describe("a connection", () => {
  let server: FakeServer;
  afterEach(async () => {
    vi.restoreAllMocks();
    await server?.stop();
  });

  const helloOf = (): readonly string[] => server.commands.find(([name]) => name === "HELLO") ?? [];

  it.each([
    ["", "xcache"],
    ["?client_name=shop-7", "shop-7"],
  ])("with %j is named %s", async (options, name) => {
    server = await FakeServer.start();
    await using backend = opened(`redis://127.0.0.1:${server.port}${options}`);
    await backend.connect();
    expect(helloOf().slice(-2)).toEqual(["SETNAME", name]);
  });

  it.each([
    ["", true, 5_000],
    ["?keep_alive=30", true, 30_000],
    ["?keep_alive=0", false, 0],
  ])("with %j is probed while idle: %s, after %i ms", async (options, isProbed, ms) => {
    server = await FakeServer.start();
    const set = vi.spyOn(Socket.prototype, "setKeepAlive");
    await using backend = opened(`redis://127.0.0.1:${server.port}${options}`);
    await backend.connect();
    expect(set).toHaveBeenCalledWith(isProbed, ms);
  });

  it.each([
    ["", 20, 500],
    ["?reconnect_pause=2&max_reconnect_pause=3", 2_000, 3_000],
  ])("with %j is tried again after %i ms at first and %i ms at last", async (options, first, longest) => {
    server = await FakeServer.start((command, client) => {
      client.socket.destroy();
      return greet(command, client);
    });
    const pauses: number[] = [];
    const clock = new ManualClock();
    const host: Clock = Object.assign(Object.create(clock), clock, {
      random: () => 1,
      after: (delayMs: number, run: () => void) => {
        if (delayMs <= 3_000 && delayMs !== 1_000 && delayMs !== 980) pauses.push(delayMs);
        return clock.after(delayMs, run);
      },
    });
    await using backend = opened(`redis://127.0.0.1:${server.port}${options}`, { clock: host });
    await failure(backend.connect());
    for (let attempt = 1; attempt < 8; attempt++) {
      const { length } = server.clients;
      await clock.advance(longest);
      await until(() => server.clients.length > length, { what: "it is tried again" });
      await until(() => pauses.length > attempt, { what: "it has failed again" });
    }
    expect(pauses[0]).toBe(first);
    expect(Math.max(...pauses)).toBe(longest);
  });
});
