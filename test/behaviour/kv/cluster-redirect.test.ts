// How a command finds the server of its key, on servers that answer exactly as scripted.
import { performance } from "node:perf_hooks";
import { expect, test } from "vitest";
import { tagForSlot } from "../../../src/backends/kv/cluster/slots.ts";
import { ReplyError } from "../../../src/backends/kv/resp/reply.ts";
import type { ScanItem } from "../../../src/core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../src/core/errors.ts";
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
import { bulk, keeperOf } from "../../support/kv/fake-server.ts";
import { soon } from "../../support/pace.ts";
import { reservePort } from "../../support/port.ts";
import { until } from "../../support/until.ts";

async function pair() {
  const scene = await Scene.start(2);
  const [one, two] = [scene.servers[0]!, scene.servers[1]!];
  scene.tell([0, LAST - 1, one.place], [LAST, LAST, two.place]);
  return { scene, one, two, [Symbol.asyncDispose]: () => scene.stop() };
}

test("MOVED is followed, remembered for its slot at once, and triggers a refresh of the other slots", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  const client = scene.client([one.place]);
  await client.connect();
  one.behave = () => moved("k", two.place);
  // The first server has not learnt of the move yet; the one it points to has.
  two.rows = [[0, LAST, two.place]];
  await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
  await send(client, "k", "SET", "k", "2");
  expect(one.keyCommands).toEqual([["SET", "k", "1"]]);
  expect(two.keyCommands).toEqual([
    ["SET", "k", "1"],
    ["SET", "k", "2"],
  ]);
  await until(() => client.nodes.length === 1, { what: "the rest is known as well" });
  await send(client, "other", "SET", "other", "3");
  expect(two.keyCommands.at(-1)).toEqual(["SET", "other", "3"]);
});

test("MOVED to an unknown server is followed once the cluster has announced it", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  scene.tell([0, LAST, one.place]);
  const client = scene.client([one.place]);
  await client.connect();
  expect(two.fake.clients).toHaveLength(0);
  one.behave = () => moved("k", two.place);
  // The first server has not learnt of the move yet; the one it points to has.
  two.rows = [[0, LAST, two.place]];
  await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
  expect(two.keyCommands).toEqual([["SET", "k", "1"]]);
  expect(client.nodes).toHaveLength(1);
});

test("ASK is followed for this command only: ASKING and the command leave back to back on one connection", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  const client = scene.client([one.place]);
  await client.connect();
  one.behave = ([, key]) => (key === "gone" ? ask("gone", two.place) : OK);
  two.behave = ([name]) => (name === "GET" ? bulk("there") : OK);
  const answers = await Promise.all([
    send(client, "gone", "SET", "gone", "1"),
    read(client, "gone"),
    send(client, "here", "SET", "here", "1"),
  ]);
  expect(answers.map(String)).toEqual(["OK", "there", "OK"]);
  expect(two.keyCommands).toEqual([["ASKING"], ["SET", "gone", "1"], ["ASKING"], ["GET", "gone"]]);
  expect(two.fake.clients).toHaveLength(1);
  one.behave = () => OK;
  await send(client, "gone", "SET", "gone", "2");
  expect(one.keyCommands.at(-1)).toEqual(["SET", "gone", "2"]);
});

test("nothing comes between ASKING and its command, even when many of them leave before the end of the tick", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  const client = scene.client([one.place]);
  await client.connect();
  const keys = Array.from({ length: 20 }, (_, at) => `gone:${at}`);
  // All replies arrive in one chunk, so that everything they cause happens in one tick.
  let answers = "";
  one.behave = ([, key]) => {
    answers += key === "first" ? OK : ask(key!, two.place);
    return key === keys.at(-1) ? answers : undefined;
  };
  two.behave = ([name]) => (name === "GET" ? NOTHING : OK);
  const onTwo = tagForSlot(LAST);
  const sent: Promise<unknown>[] = [];
  const first = new Promise<void>((resolve, reject) => {
    const proceed = () => {
      sent.push(read(client, onTwo), send(client, onTwo, "SET", onTwo, "1"));
      resolve();
    };
    client.send("first", ["SET", "first", "1"], { resolve: proceed, reject });
  });
  sent.push(...keys.map((key) => send(client, key, "SET", key, "1")));
  await first;
  await Promise.all(sent);
  const names = two.keyCommands.map(([name]) => name);
  expect(names.filter((name) => name === "ASKING")).toHaveLength(20);
  for (const [at, name] of names.entries()) if (name === "ASKING") expect(names[at + 1]).toBe("SET");
});

test("ASK to a server without a slot is followed too, and does not make it one of the masters", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  scene.tell([0, LAST, one.place]);
  const client = scene.client([one.place]);
  await client.connect();
  one.behave = () => ask("k", two.place);
  await Promise.all([send(client, "k", "SET", "k", "1"), send(client, "k", "SET", "k", "2")]);
  expect(two.keyCommands).toEqual([["ASKING"], ["SET", "k", "1"], ["ASKING"], ["SET", "k", "2"]]);
  expect(await client.masters()).toHaveLength(1);
});

test("an answer without a host means the host that was asked", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  one.rows = [
    [0, LAST - 1, { host: null, port: one.place.port }],
    [LAST, LAST, { host: "", port: two.place.port }],
  ];
  two.rows = one.rows;
  const client = scene.client([{ host: "localhost", port: one.place.port }]);
  await client.connect();
  one.behave = () => moved("k", { host: "", port: two.place.port });
  await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
  expect(two.keyCommands).toEqual([["SET", "k", "1"]]);
});

test("two servers that redirect to each other are followed at most 16 times", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  one.behave = () => moved("k", two.place);
  two.behave = () => moved("k", one.place);
  // Without pauses, which take most of operation_timeout: only the number of redirections ends it, however busy the machine is.
  const client = scene.client([one.place], { random: -1 });
  await expect(send(client, "k", "SET", "k", "1")).rejects.toThrow(/^MOVED/);
  expect(one.keyCommands.length + two.keyCommands.length).toBe(17);
});

test.each(["TRYAGAIN", "CLUSTERDOWN", "READONLY", "LOADING"])(
  "a command refused with %s is retried until it is accepted",
  async (code) => {
    await using stage = await pair();
    const { scene, one } = stage;
    one.behave = () => (one.keyCommands.length < 3 ? `-${code} not now\r\n` : OK);
    const client = scene.client([one.place]);
    await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
    expect(one.keyCommands).toHaveLength(3);
  },
);

test("a command that is refused forever fails within operation_timeout, with the last refusal", async () => {
  await using stage = await pair();
  const { scene, one } = stage;
  // Time passes on the server, so that the deadline is over with the fifth refusal however slow the machine is.
  let ahead = 0;
  one.behave = () => {
    if (one.keyCommands.length === 5) ahead = 60_000;
    return "-TRYAGAIN not now\r\n";
  };
  const client = scene.client([one.place], { operationTimeoutMs: 60_000, random: 0, ahead: () => ahead });
  await client.connect();
  const error = await send(client, "k", "SET", "k", "1").catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ReplyError);
  expect(error).toMatchObject({ code: "TRYAGAIN" });
  expect(one.keyCommands).toHaveLength(5);
});

test("a pausing call keeps the process alive, but only until it has ended", async () => {
  await using stage = await pair();
  const { scene, one } = stage;
  const ports = () => process.getActiveResourcesInfo().filter((name) => name === "MessagePort").length;
  const client = scene.client([one.place]);
  await client.connect();
  const before = ports();
  let whilePausing = 0;
  one.behave = () => {
    setImmediate(() => {
      whilePausing = Math.max(whilePausing, ports());
    });
    return one.keyCommands.length < 3 ? "-TRYAGAIN not now\r\n" : OK;
  };
  await send(client, "k", "SET", "k", "1");
  expect(whilePausing).toBe(before + 1);
  await until(() => ports() === before, { what: "nothing is kept alive" });
});

test("other refusals reach the caller at once", async () => {
  await using stage = await pair();
  const { scene, one } = stage;
  one.behave = () => "-OOM command not allowed\r\n";
  await expect(send(scene.client([one.place]), "k", "SET", "k", "1")).rejects.toThrow(/^OOM/);
  expect(one.keyCommands).toHaveLength(1);
});

test("a command lost with its connection is not retried, since it may have been executed", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  one.behave = (_, { socket }) => void socket.destroy();
  const client = scene.client([one.place]);
  await client.connect();
  await expect(send(client, "k", "SET", "k", "1")).rejects.toThrow(ConnectionError);
  expect([...one.keyCommands, ...two.keyCommands]).toEqual([["SET", "k", "1"]]);
  await until(() => one.timesAskedForSlots + two.timesAskedForSlots > 1, { what: "the slots are asked for" });
});

test("an unsent command goes to the server that has taken over", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  const dead = await reservePort();
  scene.tell([0, LAST - 1, { host: "127.0.0.1", port: dead.port }], [LAST, LAST, one.place]);
  const client = scene.client([one.place]);
  await client.connect();
  expect(scene.reports).toHaveLength(1);
  const answer = send(client, "k", "SET", "k", "1");
  scene.tell([0, LAST - 1, two.place], [LAST, LAST, one.place]);
  await expect(answer).resolves.toBe("OK");
  expect(two.keyCommands).toEqual([["SET", "k", "1"]]);
  dead.release();
});

test("commands for a server that has become a replica go to its master, even when other servers have not learnt of it", async () => {
  await using scene = await Scene.start(3);
  const [former, uninformed, successor] = scene.servers as [ScriptedServer, ScriptedServer, ScriptedServer];
  scene.tell([0, LAST - 1, former.place], [LAST, LAST, uninformed.place]);
  let ahead = 0;
  const client = scene.client([uninformed.place], { ahead: () => ahead });
  await client.connect();
  const { script } = former.fake;
  former.fake.script = (command, peer) =>
    command[0] === "INFO"
      ? bulk("redis_version:7.0.0\r\nrole:slave\r\nrun_id:fake\r\n")
      : script(command, peer);
  const timesTried = former.fake.commands.filter(([name]) => name === "INFO").length;
  for (const { socket } of former.fake.clients) socket.destroy();
  // It tries again only when it has read what the first attempt was told.
  await until(() => former.fake.commands.filter(([name]) => name === "INFO").length > timesTried + 1, {
    what: "the client has met a replica",
  });
  // It has been one for longer than a call waits.
  ahead = 10_000;
  former.rows = [
    [0, LAST - 1, successor.place],
    [LAST, LAST, uninformed.place],
  ];
  await expect(send(client, "k", "SET", "k", "1")).resolves.toBe("OK");
  expect(successor.keyCommands).toEqual([["SET", "k", "1"]]);
});

test("a command for a server that never completes the handshake fails within operation_timeout and is not sent later", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  const client = scene.client([two.place], { operationTimeoutMs: 200, connectTimeoutMs: 5_000 });
  const welcome = two.fake.script;
  one.fake.script = () => undefined;
  const began = performance.now();
  await expect(send(client, "k", "SET", "k", "1")).rejects.toThrow(OperationTimeoutError);
  expect(performance.now() - began).toBeLessThan(200 + soon(200));
  one.fake.script = welcome;
  const whole = client.nodes[0]!;
  await until(() => whole.links[0]?.connection !== undefined, { what: "the server lets us in" });
  await send(client, "k", "SET", "k", "2");
  expect(one.keyCommands.concat(two.keyCommands)).not.toContainEqual(["SET", "k", "1"]);
});

test("reads of one tick leave as GETs in one write for each server", async () => {
  await using stage = await pair();
  const { scene, one, two } = stage;
  scene.tell([0, 8_191, one.place], [8_192, LAST, two.place]);
  const client = scene.client([one.place]);
  await client.connect();
  for (const server of [one, two]) server.behave = () => NOTHING;
  const keys = Array.from({ length: 40 }, (_, at) => `key:${at}`);
  await Promise.all(keys.map((key) => read(client, key)));
  for (const { fake } of [one, two]) {
    const writes = fake.clients
      .flatMap((each) => each.writes)
      .filter((write) => write.some(([name]) => name === "GET"));
    expect(writes).toHaveLength(1);
    expect(writes[0]!.length).toBeGreaterThan(10);
  }
  expect(one.keyCommands.length + two.keyCommands.length).toBe(40);
});

test("all keys of a slot use the same one of several links, and links share the slots", async () => {
  await using stage = await pair();
  const { scene, one } = stage;
  scene.tell([0, LAST, one.place]);
  const client = scene.client([one.place], { poolSize: 3 });
  await client.connect();
  const keys = Array.from({ length: 60 }, (_, at) => `{${at % 12}}:${at}`);
  await Promise.all(keys.map((key) => send(client, key, "SET", key, "1")));
  const tagsOf = (commands: readonly (readonly string[])[]) =>
    new Set(commands.filter(([name]) => name === "SET").map(([, key]) => key!.split(":")[0]!));
  const tags = one.fake.clients.map(({ commands }) => tagsOf(commands)).filter(({ size }) => size > 0);
  expect(tags).toHaveLength(3);
  expect(tags.reduce((sum, { size }) => sum + size, 0)).toBe(12);
});

test.each([["MOVED", moved] as const, ["ASK", ask] as const])(
  "a key that has left its server by the time a scan reads it is read where %s points",
  async (_name, redirect) => {
    await using stage = await pair();
    const { scene, one, two } = stage;
    const client = scene.client([one.place]);
    const [left, there] = [keeperOf(new Set(["k"])), keeperOf(new Set(["k"]))];
    one.behave = (command, from) => (command[0] === "SCAN" ? left(command, from) : redirect("k", two.place));
    two.behave = (command, from) => {
      if (command[0] === "ASKING") return OK;
      return command[0] === "SCAN" ? keeperOf(new Set())(command, from) : there(command, from);
    };
    const found: ScanItem[] = [];
    for await (const batch of client.scan("k", undefined)) found.push(...batch);
    expect(found).toMatchObject([{ key: "k", record: { kind: "stamp" } }]);
  },
);
