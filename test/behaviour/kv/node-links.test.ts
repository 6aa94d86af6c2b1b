// Several links to one server: when a successor takes over, every link moves to it.
import { expect, test } from "vitest";
import { KvNode } from "../../../src/backends/kv/server/node.ts";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { bulk, FakeServer, greet } from "../../support/kv/fake-server.ts";
import { nodeHost } from "../../support/kv/node-host.ts";
import { failure } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

test("all links leave a server as soon as one has met its successor, even if that was a replica at first", async () => {
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
    // It is still a replica, and refused.
    await expect(node.links[1]!.connect()).rejects.toThrow("is a replica");
    expect(ports()).toEqual([former.port, undefined]);
    await next.cli("REPLICAOF", "NO", "ONE");
    await until(() => ports().every((port) => port === next.port), { what: "both are on the successor" });
  } finally {
    node.close();
  }
});

/** Every other timer of a link or a node is longer. */
const LONGEST_FIRST_PAUSE_MS = 100;

test("links that meet different servers at one address do not switch each other back and forth forever", async () => {
  await using address = await FakeServer.start((command, client) =>
    command[0] === "INFO"
      ? bulk(`redis_version:7.0.0\r\nrole:master\r\nrun_id:${address.clients.indexOf(client) % 2}\r\n`)
      : greet(command, client),
  );
  let pauses = 0;
  const clock: Clock = {
    ...systemClock,
    after: (ms, run) => {
      // One that is cut short does not count.
      const isPause = ms < LONGEST_FIRST_PAUSE_MS;
      return systemClock.after(ms, () => {
        if (isPause) pauses++;
        run();
      });
    },
  };
  const node = new KvNode(() => address.endpoint, { ...nodeHost({ clock }), poolSize: 2 });
  try {
    node.connect().catch(() => {});
    await until(() => pauses >= 2, { what: "they pause" });
    expect(address.clients.length).toBeGreaterThan(2);
    expect(address.clients.length).toBeLessThan(25);
  } finally {
    node.close();
  }
});

test("a state of the server that arrives after a later one is no sign of lost writes", async () => {
  const infoAt = (offset: number): string =>
    bulk(
      `redis_version:7.0.0\r\nrole:master\r\nrun_id:r\r\nmaster_replid:h\r\nmaster_repl_offset:${offset}\r\n`,
    );
  /** From INFO on, what the second connection is answered. */
  const late: string[] = [];
  await using server = await FakeServer.start((command, client) => {
    const isLate = client === server.clients[1];
    const answer = command[0] === "INFO" ? infoAt(isLate ? 100 : 200) : greet(command, client);
    if (!isLate || (command[0] !== "INFO" && late.length === 0)) return answer;
    late.push(answer ?? "");
    return undefined;
  });
  const offsets: (number | undefined)[] = [];
  const onServer = async (met: KvNode): Promise<void> => {
    offsets.push(met.info.history?.offset);
    if (offsets.length > 1) return;
    await until(() => late.length > 0, { what: "the second connection has asked" });
    server.clients[1]!.say(late.splice(0).join(""));
  };
  const node = new KvNode(() => server.endpoint, { ...nodeHost(), poolSize: 2, onServer });
  try {
    await node.connect();
    expect(offsets).toEqual([200, 200]);
  } finally {
    node.close();
  }
});

test("a closed node refuses a separate connection, and drops one that is being opened", async () => {
  await using silent = await FakeServer.start(() => undefined);
  const node = new KvNode(() => silent.endpoint, nodeHost());
  const opening = failure(node.separate.open());
  await silent.received("HELLO");
  node.close();
  for (const refusal of [await opening, await failure(node.separate.open())])
    expect(refusal).toMatchObject({ code: "DISCONNECTED" });
  await until(() => silent.present.length === 0, { what: "the server sees the connection end" });
  expect(silent.clients).toHaveLength(1);
});

test.each([
  ["INFO", true],
  ["CLIENT", true],
  ["CLIENT", false],
  ["TIME", true],
])(
  "a server that answers BUSY to %s in the handshake is met again (most reads tracked: %s)",
  async (name, watchesMost) => {
    await using server = await FakeServer.start((command, client) =>
      server.clients.length === 1 && command[0] === name && !client.commands.some(isTrackingOff)
        ? "-BUSY Redis is busy running a script\r\n"
        : greet(command, client),
    );
    const host = nodeHost();
    const node = new KvNode(() => server.endpoint, { ...host, watchesMost });
    try {
      await expect(node.connect()).rejects.toThrow("is not ready: BUSY");
      await until(() => node.tracks, { what: "the server is met" });
      expect([node.info.runId, node.time.setAt > 0]).toEqual(["fake", true]);
      expect(host.restrictions.list()).toEqual([]);
      expect(node.links[0]!.connection!.watching).toBe(watchesMost ? "out" : "in");
    } finally {
      node.close();
    }
  },
);

test.each([true, false])(
  "the trial CLIENT CACHING does not carry over to a read (most reads tracked: %s)",
  async (watchesMost) => {
    await using server = await FakeServer.start(greet);
    const node = new KvNode(() => server.endpoint, { ...nodeHost(), watchesMost });
    try {
      await node.connect();
      const commands = server.clients[0]!.commands.map((command) => command.join(" "));
      const word = commands.indexOf(`CLIENT CACHING ${watchesMost ? "NO" : "YES"}`);
      expect(commands.slice(word - 1, word + 2)).toEqual([
        `CLIENT TRACKING ON ${watchesMost ? "OPTOUT" : "OPTIN"}`,
        commands[word],
        "PING",
      ]);
    } finally {
      node.close();
    }
  },
);

const isTrackingOff = ([, what, how]: readonly string[]): boolean => what === "TRACKING" && how === "OFF";

test("a real server that is busy when first met is identified, and pushes changes, once it is not", async () => {
  await using server = await startRedis();
  await server.cli("config", "set", "busy-reply-threshold", "1");
  const script = server.cli("eval", "while true do end", "0").catch(() => {});
  const node = new KvNode(() => ({ host: "127.0.0.1", port: server.port }), nodeHost());
  try {
    await until(() => server.cli("ping").then(isNever, () => true), { what: "the server is busy" });
    await expect(node.connect()).rejects.toThrow("is not ready: BUSY");
    await server.cli("script", "kill");
    await script;
    await until(() => node.tracks, { what: "the server is met" });
    expect(node.info.runId).toMatch(/^[0-9a-f]{40}$/);
  } finally {
    node.close();
  }
});

const isNever = (): boolean => false;
