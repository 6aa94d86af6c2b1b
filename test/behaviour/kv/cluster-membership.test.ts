// How the client tracks the servers of a cluster: connecting, slot moves, trust, departures. On scripted servers.
import { performance } from "node:perf_hooks";
import { describe, expect, test } from "vitest";
import type { ClusterServers } from "../../../src/backends/kv/cluster/cluster.ts";
import { slotOf, tagForSlot } from "../../../src/backends/kv/cluster/slots.ts";
import { type BackendError, ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
import {
  ask,
  LAST,
  moved,
  NOTHING,
  OK,
  read,
  Scene,
  type ScriptedServer,
  send,
} from "../../support/kv/cluster-scene.ts";
import { bulk, greet, keeperOf } from "../../support/kv/fake-server.ts";
import { opened } from "../../support/kv/opened.ts";
import { failure } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { reservePort } from "../../support/port.ts";
import { until } from "../../support/until.ts";

async function pair() {
  const scene = await Scene.start(2);
  const [one, two] = [scene.servers[0]!, scene.servers[1]!];
  scene.tell([0, LAST - 1, one.place], [LAST, LAST, two.place]);
  return { scene, one, two, [Symbol.asyncDispose]: () => scene.stop() };
}

async function trustedEpoch(client: ClusterServers, key: string): Promise<number> {
  return until(() => client.epoch(key) || undefined, { what: "the pushes are trusted" });
}

describe("connecting", () => {
  test("reaches every master, whichever of the given hosts is alive", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const dead = await reservePort();
    const client = scene.client([{ host: "127.0.0.1", port: dead.port }, two.place]);
    await client.connect();
    expect(client.nodes.map(({ links }) => links[0]?.connection?.endpoint)).toEqual([one.place, two.place]);
    dead.release();
  });

  test("does not wait for a host that never answers", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    await using silent = await Scene.start(1);
    silent.servers[0]!.fake.script = () => undefined;
    const client = scene.client([silent.servers[0]!.place, one.place]);
    const began = performance.now();
    await client.connect();
    expect(performance.now() - began).toBeLessThan(soon(500));
    expect(two.fake.clients).toHaveLength(1);
  });

  test("fails within connect_timeout when no server answers", async () => {
    await using silent = await Scene.start(1);
    silent.servers[0]!.fake.script = () => undefined;
    const client = silent.client([silent.servers[0]!.place], { connectTimeoutMs: 150 });
    const began = performance.now();
    await expect(client.connect()).rejects.toThrow(OperationTimeoutError);
    expect(performance.now() - began).toBeLessThan(150 + soon(250));
    await until(() => silent.servers[0]!.fake.present.length === 0, { what: "the socket is closed" });
  });

  test("fails at once when every host refuses, and later calls try again", async () => {
    await using stage = await pair();
    const { scene } = stage;
    const dead = await reservePort();
    const client = scene.client([{ host: "127.0.0.1", port: dead.port }]);
    await expect(client.connect()).rejects.toThrow(ConnectionError);
    await expect(send(client, "k", "SET", "k", "1")).rejects.toThrow(/none of the 1 servers/);
    dead.release();
  });

  test("succeeds when one master is unreachable, which is reported and fails only its keys", async () => {
    await using stage = await pair();
    const { scene, one } = stage;
    const dead = await reservePort();
    const gone = slotOf("gone");
    const deadPlace = { host: "127.0.0.1", port: dead.port };
    scene.tell([0, gone - 1, one.place], [gone, gone, deadPlace], [gone + 1, LAST, one.place]);
    const client = scene.client([one.place], { operationTimeoutMs: 200 });
    await client.connect();
    expect(scene.reports.map(String)).toEqual([expect.stringContaining(String(dead.port))]);
    const began = performance.now();
    const [lost, other] = await Promise.allSettled([
      send(client, "gone", "SET", "gone", "1"),
      send(client, "here", "SET", "here", "1").then(() => performance.now() - began),
    ]);
    expect(lost.status).toBe("rejected");
    expect(other.status === "fulfilled" && other.value).toBeLessThan(50);
    dead.release();
  });

  test("rejects a single server, naming the reason", async () => {
    await using stage = await pair();
    const { scene, one } = stage;
    one.fake.script = (command, client) =>
      command[0] === "CLUSTER"
        ? "-ERR This instance has cluster support disabled\r\n"
        : greet(command, client);
    const error = await scene
      .client([one.place])
      .connect()
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionError);
    expect((error as ConnectionError).hint).toMatch(/redis:\/\//);
  });

  test("names the missing permission", async () => {
    await using stage = await pair();
    const { scene, one } = stage;
    one.fake.script = (command, client) =>
      command[0] === "CLUSTER"
        ? "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n"
        : greet(command, client);
    const error = await scene
      .client([one.place])
      .connect()
      .catch((thrown: unknown) => thrown);
    expect((error as BackendError).message).toMatch(/cluster\|slots/);
    expect((error as BackendError).hint).toMatch(/Allow/);
  });
});

describe("asking for the slots", () => {
  test("happens once for many redirections, and not again at once", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    one.behave = ([, key]) => moved(key!, two.place);
    const keys = Array.from({ length: 200 }, (_, at) => `key:${at}`);
    const asked = () => one.timesAskedForSlots + two.timesAskedForSlots;
    const before = asked();
    two.rows = [[0, LAST, two.place]];
    await Promise.all(keys.map((key) => send(client, key, "SET", key, "1")));
    await until(() => client.nodes.length === 1, { what: "the new table is in use" });
    expect(asked() - before).toBeLessThanOrEqual(2);
  });

  test("continues past a server that knows only part of the cluster, and uses the most complete answer", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const nodes = client.nodes;
    two.rows = [[LAST, LAST, two.place]];
    // The server that answered last is asked first.
    await send(client, tagForSlot(LAST), "SET", tagForSlot(LAST), "1");
    const [onOne, onTwo] = [one.timesAskedForSlots, two.timesAskedForSlots];
    client.refreshSoon();
    await until(() => two.timesAskedForSlots > onTwo && one.timesAskedForSlots > onOne, {
      what: "both are asked",
    });
    await client.refreshTopology();
    await send(client, "k", "SET", "k", "1");
    expect(client.nodes).toEqual(nodes);
    expect(one.keyCommands).toEqual([["SET", "k", "1"]]);
  });

  test("takes the answer with the most slots when none is complete", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const dead = await reservePort();
    one.rows = [
      [0, 100, one.place],
      [LAST, LAST, two.place],
    ];
    two.rows = [[LAST, LAST, two.place]];
    const client = scene.client([one.place, two.place, { host: "127.0.0.1", port: dead.port }]);
    await client.connect();
    expect(two.timesAskedForSlots).toBe(1);
    expect(client.nodes.map(({ links }) => links[0]?.connection?.endpoint)).toEqual([one.place, two.place]);
    dead.release();
  });

  test("finds the rest of a cluster that was unreachable at first", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const usual = one.fake.script;
    one.fake.script = () => undefined;
    two.rows = [[LAST, LAST, two.place]];
    const client = scene.client([two.place, one.place]);
    await client.connect();
    expect(client.nodes).toHaveLength(1);
    one.fake.script = usual;
    await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
    expect(client.nodes).toHaveLength(2);
  });

  test("stops at the first answer once all have agreed that some slots are unassigned", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    scene.tell([0, 10, one.place], [LAST, LAST, two.place]);
    const client = scene.client([one.place, two.place]);
    await client.connect();
    expect([one.timesAskedForSlots, two.timesAskedForSlots]).toEqual([1, 1]);
    await client.refreshTopology();
    expect(one.timesAskedForSlots + two.timesAskedForSlots).toBe(3);
  });

  test("stops at the first answer even when a server knows of no slots at all", async () => {
    await using scene = await Scene.start(3);
    const [one, two, newcomer] = [scene.servers[0]!, scene.servers[1]!, scene.servers[2]!];
    scene.tell([0, 10, one.place], [LAST, LAST, two.place]);
    newcomer.rows = [];
    const client = scene.client([one.place, two.place, newcomer.place], { random: 0 });
    await client.connect();
    for (let time = 0; time < 3; time++) await client.refreshTopology();
    expect(newcomer.timesAskedForSlots).toBe(1);
  });

  test("does not ask every server each time while one is unreachable and slots are unassigned", async () => {
    await using scene = await Scene.start(4);
    const [one, two, replica, odd] = scene.servers as [
      ScriptedServer,
      ScriptedServer,
      ScriptedServer,
      ScriptedServer,
    ];
    scene.tell([0, 10, one.place, replica.place], [LAST, LAST, two.place]);
    odd.fake.script = () => undefined;
    const client = scene.client([one.place, odd.place], { random: 0 });
    await client.connect();
    await client.refreshTopology();
    const [onReplica, onOdd] = [replica.fake.clients.length, odd.fake.clients.length];
    // Like learn(), without its growing pauses.
    for (let time = 0; time < 5; time++) await client.holders(new Set());
    expect([replica.fake.clients.length, odd.fake.clients.length]).toEqual([onReplica, onOdd]);
  });

  test("does not undo a move that was learnt of while the answer was in flight", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const [first, second] = client.nodes;
    const other = slotOf("other");
    const answers: (() => void)[] = [];
    for (const server of [one, two]) {
      const usual = server.fake.script;
      server.fake.script = (command, from) => {
        const answer = usual(command, from);
        if (command[0] !== "CLUSTER") return answer;
        answers.push(() => from.say(answer!));
        return undefined;
      };
    }
    // The answer contains another move, which shows when it has arrived.
    scene.tell([0, other - 1, one.place], [other, other, two.place], [other + 1, LAST, one.place]);
    client.refreshSoon();
    await until(() => answers.length > 0, { what: "the slots are asked for" });
    one.behave = () => moved("k", two.place);
    await client.ahead.send("k", ["SET", "k", "1"], { resolve: () => {}, reject: () => {} });
    await until(() => client.isOn("k", second!), { what: "the move of the slot" });
    for (const answer of answers) answer();
    await until(() => client.isOn("other", second!), { what: "the answer has come" });
    expect([client.isOn("k", second!), client.isOn("foo", first!)]).toEqual([true, true]);
  });

  test("continues while a caller relies on pushes, so that a move is noticed without any command", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const epoch = await trustedEpoch(client, "k");
    scene.tell([0, LAST, two.place]);
    await until(() => client.epoch("k") !== epoch, { what: "the move is noticed", timeoutMs: 3_000 });
    expect(one.keyCommands).toEqual([]);
  });
});

describe("an epoch", () => {
  test("changes when a slot moves and again when it moves back, and nothing cached is trusted any longer", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const first = await trustedEpoch(client, "k");
    expect(client.epoch("k")).toBe(first);
    one.behave = () => moved("k", two.place);
    await send(client, "k", "SET", "k", "1");
    expect(scene.changes).toContain(undefined);
    const second = await trustedEpoch(client, "k");
    [one.behave, two.behave] = [() => OK, () => moved("k", one.place)];
    await send(client, "k", "SET", "k", "2");
    const third = await trustedEpoch(client, "k");
    expect(new Set([first, second, third]).size).toBe(3);
  });

  test("changes when a read was answered by a server that does not own the slot yet", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const before = await trustedEpoch(client, "k");
    one.behave = () => ask("k", two.place);
    two.behave = ([name]) => (name === "ASKING" ? OK : NOTHING);
    await read(client, "k");
    expect(client.epoch("k")).not.toBe(before);
  });

  test("of other slots stays the same when one moves", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const other = await trustedEpoch(client, "other");
    one.behave = () => moved("k", two.place);
    await send(client, "k", "SET", "k", "1");
    expect(client.epoch("other")).toBe(other);
  });

  test("is 0 for an unassigned slot and after closing", async () => {
    await using stage = await pair();
    const { scene, one } = stage;
    scene.tell([0, 10, one.place]);
    const client = scene.client([one.place]);
    await client.connect();
    const inSlotThree = tagForSlot(3);
    expect(client.epoch("foo")).toBe(0);
    await trustedEpoch(client, inSlotThree);
    client.close();
    expect(client.epoch(inSlotThree)).toBe(0);
  });

  test("of a later client never equals that of an earlier one", async () => {
    await using stage = await pair();
    const { scene, one } = stage;
    const clients = [scene.client([one.place]), scene.client([one.place])];
    const epochs = [];
    for (const client of clients) {
      await client.connect();
      epochs.push(await trustedEpoch(client, "k"));
    }
    expect(epochs[0]).not.toBe(epochs[1]);
  });
});

describe("a server", () => {
  test("that has lost its slots is disconnected once it has answered its pending commands", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    one.behave = () => undefined;
    const slow = send(client, "slow", "SET", "slow", "1");
    const { say } = await one.fake.received("SET", "slow");
    scene.tell([0, LAST, two.place]);
    await until(() => client.nodes.length === 1, { what: "the new table is in use" });
    expect(one.fake.present).toHaveLength(1);
    say(OK);
    await expect(slow).resolves.toBe("OK");
    await until(() => one.fake.present.length === 0, { what: "the server is left" });
  });

  test("that has lost its slots still answers reads of the same tick", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    // The server that answered last is asked first.
    await send(client, "k", "SET", "k", "1");
    const usual = one.fake.script;
    // The reply to the SET is sent along with the news, so that the next read falls into the same tick.
    one.fake.script = (command, from) => {
      const answer = usual(command, from);
      if (command[0] === "SET") return undefined;
      return command[0] === "CLUSTER" ? `${OK}${answer}` : answer;
    };
    one.behave = ([name]) => (name === "GET" ? bulk("v") : OK);
    two.behave = one.behave;
    scene.tell([0, LAST, two.place]);
    const writing = send(client, "k", "SET", "k", "2");
    const learning = client.refreshTopology();
    expect(String(await writing.then(() => read(client, "k")))).toBe("v");
    await learning;
    await until(() => one.fake.present.length === 0, { what: "the server is left" });
  });

  test("is disconnected too when only redirections have shown that it lost its slots", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    const key = tagForSlot(LAST);
    two.behave = () => moved(key, one.place);
    scene.tell([0, LAST, one.place]);
    await send(client, key, "SET", key, "1");
    await until(() => two.fake.present.length === 0, { what: "the server is left" });
    expect(client.nodes).toHaveLength(1);
  });

  test("that replaces another inherits when that one was last verified", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    scene.tell([0, LAST, one.place]);
    const client = scene.client([one.place]);
    await client.connect();
    await send(client, "k", "SET", "k", "1");
    const { connection } = client.nodes[0]!.links[0]!;
    one.behave = () => moved("k", two.place);
    scene.tell([0, LAST, two.place]);
    await send(client, "k", "SET", "k", "2");
    expect(client.nodes[0]!.lastProvenAt).toBe(connection!.provenAt);
    expect(connection!.provenAt).toBeGreaterThan(0);
  });

  test("has an anchor that hashes a key of ours to it, and its successor has the same anchor", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    scene.tell([0, 5_000, one.place], [5_001, LAST, two.place]);
    const client = scene.client([one.place]);
    const [first, second] = await client.masters();
    for (const node of [first!, second!]) {
      const key = `app/%7bchild%7d!x:server${client.anchor(node)}`;
      expect(client.isOn(key, node)).toBe(true);
    }
    expect(client.isOn(`app!x:server${client.anchor(first!)}`, second!)).toBe(false);
    const anchor = client.anchor(first!);
    scene.tell([0, 4_000, two.place], [4_001, LAST, one.place]);
    const isMoved = async () => client.isOn(`app!x:server${anchor}`, (await client.masters())[0]!);
    await until(async () => (await isMoved()) && client.nodes[0] === second, { what: "the move is noticed" });
    expect(client.anchor(second!)).toBe(anchor);
  });

  test("whose meeting is not over can be reached only by the meetings of other servers", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    let endMeetings = () => {};
    const meetings = new Promise<void>((resolve) => {
      endMeetings = resolve;
    });
    const client = scene.client([one.place], { met: () => meetings });
    const usual = send(client, "k", "SET", "k", "1");
    await one.fake.received("INFO");
    const answer = await new Promise((resolve, reject) =>
      client.ahead.send("k", ["SET", "k", "ahead"], { resolve, reject }),
    );
    expect(answer).toBe("OK");
    one.behave = () => moved("k", two.place);
    two.behave = () => bulk("there");
    const read = await new Promise((resolve, reject) => client.ahead.read("k", true, { resolve, reject }));
    expect(String(read)).toBe("there");
    expect(one.keyCommands).toEqual([
      ["SET", "k", "ahead"],
      ["GET", "k"],
    ]);
    one.behave = () => OK;
    endMeetings();
    await expect(usual).resolves.toBe("OK");
  });

  test("without a slot has no anchor", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    const [, second] = await client.masters();
    scene.tell([0, LAST, one.place]);
    await until(() => client.nodes.length === 1, { what: "the move is noticed" });
    expect(() => client.anchor(second!)).toThrow(ConnectionError);
    expect(two.fake.present).toHaveLength(0);
  });
});

describe("closing", () => {
  test("ends everything at once: sent commands, waiting calls, topology lookups and every connection", async () => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    await client.connect();
    one.behave = ([, key]) => (key === "paused" ? "-TRYAGAIN later\r\n" : undefined);
    const calls = ["sent", "paused"].map((key) => send(client, key, "SET", key, "1"));
    await one.fake.received("SET", "paused");
    const settled = Promise.allSettled(calls);
    client.close();
    client.close();
    for (const { status, reason } of (await settled) as PromiseRejectedResult[]) {
      expect([status, reason.code]).toEqual(["rejected", "DISCONNECTED"]);
    }
    await expect(send(client, "k", "SET", "k", "1")).rejects.toMatchObject({ code: "DISCONNECTED" });
    await until(() => one.fake.present.length + two.fake.present.length === 0, { what: "all are closed" });
  });

  test("during connecting ends that too", async () => {
    await using silent = await Scene.start(1);
    silent.servers[0]!.fake.script = () => undefined;
    const client = silent.client([silent.servers[0]!.place]);
    const connecting = client.connect();
    await silent.servers[0]!.fake.received("HELLO");
    client.close();
    await expect(connecting).rejects.toMatchObject({ code: "DISCONNECTED" });
    await until(() => silent.servers[0]!.fake.present.length === 0, { what: "the socket is closed" });
  });
});

describe("a scan", () => {
  /** Each server holds the keys of its set, and runs a hook just before it is scanned. */
  async function scannedPair() {
    const { scene, one, two } = await pair();
    const keys = [new Set<string>(), new Set<string>()] as const;
    const act = { before: (_at: number): void => {} };
    for (const [at, server] of [one, two].entries()) {
      server.behave = (command, from) => {
        if (command[0] === "SCAN") act.before(at);
        return keeperOf(keys[at]!)(command, from);
      };
    }
    const client = scene.client([one.place], { random: 0 });
    return { scene, one, two, keys, act, client, [Symbol.asyncDispose]: () => scene.stop() };
  }

  async function scanned(client: ClusterServers): Promise<string[]> {
    const found: string[] = [];
    for await (const batch of client.scan("", undefined)) found.push(...batch.map(({ key }) => key));
    return found.sort();
  }

  const inLast = tagForSlot(LAST);

  test("finds the keys of a slot that moves to an already scanned server, and no other keys twice", async () => {
    await using stage = await scannedPair();
    const { scene, one, keys, act, client } = stage;
    keys[0].add("stays");
    keys[1].add(inLast);
    act.before = (at) => {
      if (at !== 1) return;
      scene.tell([0, LAST, one.place]);
      keys[1].delete(inLast);
      keys[0].add(inLast);
    };
    expect(await scanned(client)).toEqual([inLast, "stays"].sort());
  });

  test("continues without a server that leaves the cluster meanwhile", async () => {
    await using stage = await scannedPair();
    const { scene, one, two, keys, client } = stage;
    keys[0].add("stays");
    await client.connect();
    const steps = client.scan("", undefined)[Symbol.asyncIterator]();
    await steps.next();
    scene.tell([0, LAST, one.place]);
    keys[0].add(inLast);
    await client.refreshTopology();
    await until(() => two.fake.present.length === 0, { what: "the server is left" });
    expect((await steps.next()).value).toMatchObject([{ key: inLast }]);
    expect(await steps.next()).toMatchObject({ done: true });
  });

  test("finds the keys of a server that announces another address than the others know", async () => {
    await using stage = await scannedPair();
    const { one, two, keys, client } = stage;
    keys[1].add(inLast);
    await client.connect();
    two.rows = [
      [0, LAST - 1, one.place],
      [LAST, LAST, { host: "localhost", port: two.place.port }],
    ];
    expect(await scanned(client)).toEqual([inLast]);
  });

  test.each(["SLOTS", "MYID"])("reports that CLUSTER %s was refused", async (refused) => {
    await using stage = await scannedPair();
    const { one, two, client } = stage;
    await client.connect();
    two.rows = [
      [0, LAST - 1, one.place],
      [LAST, LAST, { host: "localhost", port: two.place.port }],
    ];
    const usual = two.fake.script;
    const words = `NOPERM this user has no permissions to run the 'cluster|${refused.toLowerCase()}' command`;
    two.fake.script = (command, from) => (command[1] === refused ? `-${words}\r\n` : usual(command, from));
    const error = await failure(scanned(client));
    expect(error).toMatchObject({ code: "STORE_FAILED", message: `the store answered: ${words}` });
    expect(error.hint).toContain("docs/guide/kv.md");
  });

  test("that is aborted before it begins sends no command", async () => {
    await using stage = await scannedPair();
    const { one, two, client } = stage;
    for await (const _ of client.scan("", AbortSignal.abort())) expect.unreachable();
    expect([...one.fake.clients, ...two.fake.clients]).toEqual([]);
    await client.connect();
    const before = [one.fake.clients.length, two.fake.clients.length];
    for await (const _ of client.scan("", AbortSignal.abort())) expect.unreachable();
    expect([one.fake.clients.length, two.fake.clients.length]).toEqual(before);
  });

  test("fails when a slot keeps moving", async () => {
    await using stage = await scannedPair();
    const { scene, one, two, act, client } = stage;
    act.before = (at) => scene.tell([0, LAST - 1, one.place], [LAST, LAST, at === 0 ? two.place : one.place]);
    const error = await failure(scanned(client));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("kept migrating");
  });

  test("rejects when the client is closed", async () => {
    await using stage = await scannedPair();
    const { client } = stage;
    const steps = client.scan("", undefined)[Symbol.asyncIterator]();
    await steps.next();
    client.close();
    expect(await failure(steps.next())).toMatchObject({ code: "DISCONNECTED" });
  });
});

describe("an estimate", () => {
  /** One server has a key, and the other does not answer how many it has. */
  async function estimated() {
    const { scene, one, two } = await pair();
    one.behave = (command, from) => {
      if (command[0] === "DBSIZE") return ":1\r\n";
      return command[0] === "GET" ? NOTHING : keeperOf(new Set(["k"]))(command, from);
    };
    two.behave = ([name, key]) => (name === "DBSIZE" ? undefined : moved(key!, one.place));
    const backend = opened(`redis+cluster://127.0.0.1:${one.place.port}`);
    await backend.connect();
    const usage = backend.usage("k");
    usage.catch(() => {});
    await two.fake.received("DBSIZE");
    return {
      ...{ scene, one, backend, usage },
      [Symbol.asyncDispose]: async () => {
        await backend.disconnect();
        await scene.stop();
      },
    };
  }

  test("omits a server that leaves the cluster meanwhile", async () => {
    await using stage = await estimated();
    const { scene, one, backend, usage } = stage;
    scene.tell([0, LAST, one.place]);
    await backend.read(tagForSlot(LAST));
    expect(await usage).toMatchObject({ keys: 1, approximate: true });
  });

  test("rejects when the client is closed", async () => {
    await using stage = await estimated();
    const { backend, usage } = stage;
    const failed = failure(usage);
    await backend.disconnect();
    expect(await failed).toMatchObject({ code: "DISCONNECTED" });
  });
});
