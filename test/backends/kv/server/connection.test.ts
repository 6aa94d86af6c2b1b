// One connection, byte by byte against a scripted server, and against a real one.
import { createServer } from "node:net";
import { inspect } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Reply, ReplyError, type Span } from "../../../../src/backends/kv/resp/reply.ts";
import type { Argument } from "../../../../src/backends/kv/resp/writer.ts";
import {
  Connection,
  type ConnectionListener,
  type ConnectionSettings,
  nameOf,
} from "../../../../src/backends/kv/server/connection.ts";
import { lost, refused } from "../../../../src/backends/kv/server/connection-error.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../../../src/core/errors.ts";
import { ManualClock, settle } from "../../../../src/testing/index.ts";
import { bulk, type FakeClient, FakeServer, greet } from "../../../support/kv/fake-server.ts";
import { soon } from "../../../support/pace.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { until } from "../../../support/until.ts";

/** Records what a connection emits. */
class Heard implements ConnectionListener {
  readonly pushes: string[] = [];
  readonly closed: ((error: XCacheError) => void) & { readonly errors: XCacheError[] };

  constructor() {
    const errors: XCacheError[] = [];
    this.closed = Object.assign((error: XCacheError) => void errors.push(error), { errors });
  }

  pushed(push: readonly Reply[]): void {
    this.pushes.push(push.map(String).join(" "));
  }
}

const SETTINGS: Omit<ConnectionSettings, "endpoint"> = {
  tls: undefined,
  database: 0,
  clock: systemClock,
  connectTimeoutMs: 2_000,
  operationTimeoutMs: 2_000,
  readsTogether: true,
};

const opened: Connection[] = [];
let fake: FakeServer;
let clock: ManualClock;
let heard: Heard;

beforeEach(async () => {
  fake = await FakeServer.start();
  clock = new ManualClock();
  heard = new Heard();
});

afterEach(async () => {
  for (const connection of opened.splice(0)) connection.destroy(new ConnectionError("the test is over"));
  await fake.stop();
});

/** A connection to the fake server; its clock stands still. */
async function open(settings: Partial<ConnectionSettings> = {}): Promise<Connection> {
  const endpoint = settings.endpoint ?? fake.endpoint;
  const connection = await Connection.open({ ...SETTINGS, clock, ...settings, endpoint }, heard);
  opened.push(connection);
  return connection;
}

const read = (connection: Connection, key: string): Promise<string> =>
  new Promise((resolve, reject) =>
    connection.read(key, true, { resolve: (reply) => resolve(String(reply)), reject }),
  );

/** The error it fails with; call this before it can fail. */
const failure = async (promise: Promise<unknown>): Promise<XCacheError> => {
  const outcome = await promise.then(
    (value) => new Error(`it succeeded with ${String(value)}`),
    (error: unknown) => error,
  );
  return outcome as XCacheError;
};

const client = (): FakeClient => fake.clients.at(-1)!;

describe("commands", () => {
  test("of a busy tick do not wait for its end: they are sent after 32, together with earlier reads", async () => {
    const connection = await open();
    const before = client().writes.length;
    const echoes = Array.from({ length: 31 }, (_, at) => connection.command("ECHO", String(at)));
    const value = read(connection, "k");
    echoes.push(connection.command("ECHO", "31"), connection.command("ECHO", "32"));
    for (const reply of [...echoes, value]) reply.catch(() => {});
    await fake.received("ECHO", "32");
    const order = client()
      .writes.slice(before)
      .flat()
      .map((args) => args.join(" "));
    const echo = (at: number): string => `ECHO ${at}`;
    expect(order).toEqual([...Array.from({ length: 32 }, (_, at) => echo(at)), "GET k", echo(32)]);
  });

  test("of one tick are sent in one write, in order", async () => {
    const connection = await open();
    const replies = Array.from({ length: 30 }, (_, at) => connection.command("ECHO", String(at)));
    await fake.received("ECHO", "29");
    expect(client().writes.at(-1)).toEqual(replies.map((_, at) => ["ECHO", String(at)]));
    expect(connection.inFlight).toBe(30);
    client().say(replies.map((_, at) => `:${at}\r\n`).join(""));
    expect(await Promise.all(replies)).toEqual(replies.map((_, at) => at));
    expect(connection.inFlight).toBe(0);
  });

  test("behind ASKING are sent with it; if one cannot be written, something else uses up its ASKING", async () => {
    fake.script = (command, from) => greet(command, from) ?? "+OK\r\n";
    const connection = await open();
    const asking = (...args: Argument[]): Promise<Reply> =>
      new Promise((resolve, reject) => connection.sendAsking(args, { resolve, reject }));
    const unwritable = {
      length: 1,
      writeTo: () => {
        throw new RangeError("Array buffer allocation failed");
      },
    };
    const failed = failure(asking("SET", "k", unwritable));
    expect(await Promise.all([connection.command("SET", "other", "1"), asking("SET", "k", "1")])).toEqual([
      "OK",
      "OK",
    ]);
    expect(await failed).toBeInstanceOf(RangeError);
    const sent = client().commands.slice(1);
    expect(sent).toEqual([["ASKING"], ["PING"], ["SET", "other", "1"], ["ASKING"], ["SET", "k", "1"]]);
    expect(connection.inFlight).toBe(0);
  });

  test("get their replies in order, however these are split", async () => {
    const connection = await open();
    const replies = ["a", "b", "c"].map((key) => connection.command("ECHO", key));
    await fake.received("ECHO", "c");
    for (const byte of "$3\r\none\r\n*1\r\n:2\r\n+three\r\n") {
      client().say(byte);
      await settle();
    }
    expect((await replies[0])?.toString()).toBe("one");
    expect(await replies[1]).toEqual([2]);
    expect(await replies[2]).toBe("three");
  });

  test("that are refused reject alone", async () => {
    const connection = await open();
    const replies = [connection.command("A"), connection.command("B"), connection.command("C")];
    await fake.received("C");
    client().say("+a\r\n-WRONGTYPE no\r\n+c\r\n");
    expect(await replies[0]).toBe("a");
    expect(await failure(replies[1]!)).toMatchObject({ code: "WRONGTYPE", message: "WRONGTYPE no" });
    expect(await replies[2]).toBe("c");
    expect(connection.isOpen).toBe(true);
  });

  test("by the thousand are answered in order while more are sent", async () => {
    fake.script = (command, from) => (command[0] === "ECHO" ? `:${command[1]}\r\n` : greet(command, from));
    const connection = await open();
    const replies: Promise<Reply>[] = [];
    for (let round = 0; round < 20; round++) {
      for (let at = 0; at < 200; at++) replies.push(connection.command("ECHO", String(replies.length)));
      await settle();
    }
    expect(await Promise.all(replies)).toEqual(replies.map((_, at) => at));
  });

  test("report how long the oldest of them has been waiting, and nothing while there is none", async () => {
    const connection = await open();
    expect(connection.awaitedSince).toBe(Number.POSITIVE_INFINITY);
    const first = connection.command("ONE");
    const client = await fake.received("ONE");
    const sentAt = clock.now();
    await clock.advance(100);
    const second = connection.command("TWO");
    await fake.received("TWO");
    expect(connection.awaitedSince).toBe(sentAt);
    client.say("+1\r\n");
    await first;
    expect(connection.awaitedSince).toBe(sentAt + 100);
    client.say("+2\r\n");
    await second;
    expect(connection.awaitedSince).toBe(Number.POSITIVE_INFINITY);
  });

  test("prove that the connection was alive when they were sent", async () => {
    const connection = await open();
    const before = clock.now();
    await clock.advance(40);
    const reply = connection.command("GET", "k");
    await fake.received("GET");
    await clock.advance(60);
    expect(connection.provenAt).toBe(before);
    client().say("_\r\n");
    await reply;
    expect(connection.provenAt).toBe(before + 40);
  });
});

describe("reads", () => {
  beforeEach(() => {
    fake.script = (command, from) => {
      const [name, ...keys] = command;
      if (name === "GET") return bulk(`<${keys[0]}>`);
      if (name === "MGET") return `*${keys.length}\r\n${keys.map((key) => bulk(`<${key}>`)).join("")}`;
      return greet(command, from);
    };
  });

  test("count as in flight before they are sent: their connection is not idle", async () => {
    const connection = await open();
    const reads = [
      read(connection, "a"),
      new Promise((resolve) => connection.read("b", false, { resolve, reject: resolve })),
    ];
    expect(connection.inFlight).toBe(2);
    await fake.received("GET", "a");
    await fake.received("GET", "b");
    client().say(`${bulk("1")}${bulk("2")}`);
    await Promise.all(reads);
    expect(connection.inFlight).toBe(0);
  });

  test("of one tick become one MGET, after the other commands of that tick", async () => {
    const connection = await open();
    const first = read(connection, "a");
    const ping = connection.command("PING");
    const rest = ["b", "c"].map((key) => read(connection, key));
    expect(await Promise.all([first, ...rest])).toEqual(["<a>", "<b>", "<c>"]);
    expect(await ping).toBe("PONG");
    expect(client().writes.at(-1)).toEqual([["PING"], ["MGET", "a", "b", "c"]]);
  });

  test("that are alone become a GET", async () => {
    const connection = await open();
    expect(await read(connection, "a")).toBe("<a>");
    expect(await read(connection, "b")).toBe("<b>");
    expect(client().writes.slice(-2)).toEqual([[["GET", "a"]], [["GET", "b"]]]);
  });

  test("are GETs in one write if keys of several slots cannot be read together", async () => {
    const connection = await open({ readsTogether: false });
    expect(await Promise.all([read(connection, "a"), read(connection, "b")])).toEqual(["<a>", "<b>"]);
    expect(client().writes.at(-1)).toEqual([
      ["GET", "a"],
      ["GET", "b"],
    ]);
  });

  test("of very many keys are split over several MGETs", async () => {
    const connection = await open();
    const keys = Array.from({ length: 1_100 }, (_, at) => `k${at}`);
    expect(await Promise.all(keys.map((key) => read(connection, key)))).toEqual(
      keys.map((key) => `<${key}>`),
    );
    expect(
      client()
        .commands.filter(([name]) => name === "MGET")
        .map(({ length }) => length - 1),
    ).toEqual([512, 512, 76]);
  });

  test("are all rejected when their MGET is refused, and only those", async () => {
    fake.script = (command, from) => (command[0] === "MGET" ? "-OOM no\r\n" : greet(command, from));
    const connection = await open();
    const reads = [failure(read(connection, "a")), failure(read(connection, "b"))];
    const ping = connection.command("PING");
    expect(await Promise.all(reads)).toMatchObject([{ code: "OOM" }, { code: "OOM" }]);
    expect(await ping).toBe("PONG");
  });
});

describe("pushes", () => {
  test("are emitted in order with the replies", async () => {
    const connection = await open();
    const order: string[] = [];
    const note = (name: string): { resolve(): void; reject(): void } => ({
      resolve: () => order.push(`${name} after ${heard.pushes.length} pushes`),
      reject: () => {},
    });
    connection.send(["A"], note("a"));
    connection.send(["B"], note("b"));
    await fake.received("B");
    client().say("+a\r\n>2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+b\r\n");
    await until(() => order.length === 2, { what: "both are answered" });
    expect(order).toEqual(["a after 0 pushes", "b after 1 pushes"]);
    expect(heard.pushes).toEqual(["invalidate k"]);
  });

  test("can be the only answer to a command", async () => {
    fake.script = (command, from) =>
      command[0] === "SUBSCRIBE" ? ">3\r\n+subscribe\r\n+news\r\n:1\r\n" : greet(command, from);
    const connection = await open();
    connection.tell(["SUBSCRIBE", "news"]);
    expect(await connection.command("PING")).toBe("PONG");
    expect(heard.pushes).toEqual(["subscribe news 1"]);
    await clock.advance(10_000);
    expect(connection.isOpen).toBe(true);
  });
});

describe("the deadline", () => {
  test("destroys the connection and rejects everything pending, once", async () => {
    const connection = await open({ operationTimeoutMs: 100 });
    const sent = [failure(connection.command("GET", "a")), failure(connection.command("GET", "b"))];
    await fake.received("GET", "b");
    await clock.advance(99);
    const late = failure(connection.command("GET", "late"));
    await fake.received("GET", "late");
    expect(connection.isOpen).toBe(true);
    await clock.advance(1);
    for (const promise of [...sent, late]) {
      const error = await promise;
      expect(error).toBeInstanceOf(OperationTimeoutError);
      expect(error.message).toContain(nameOf(fake.endpoint));
      expect(error.message).toContain("0.1 s");
    }
    expect(connection.isOpen).toBe(false);
    expect(heard.closed.errors).toHaveLength(1);
    await until(() => client().socket.destroyed, { what: "the server sees the connection end" });
    expect(clock.pending).toBe(0);
  });

  test("also rejects what was not sent yet", async () => {
    const connection = await open({ operationTimeoutMs: 100 });
    const sent = connection.command("GET", "a");
    await fake.received("GET", "a");
    const unsent = [connection.command("SET", "k", "v"), read(connection, "k")];
    const failures = [sent, ...unsent].map(failure);
    connection.destroy(new OperationTimeoutError("too late"));
    for (const error of await Promise.all(failures)) expect(error).toBeInstanceOf(OperationTimeoutError);
    await settle();
    expect(client().commands.some(([name]) => name === "SET")).toBe(false);
  });

  test("counts from when the oldest unanswered command was sent", async () => {
    const connection = await open({ operationTimeoutMs: 100 });
    const first = connection.command("GET", "a");
    await fake.received("GET", "a");
    await clock.advance(80);
    const second = failure(connection.command("GET", "b"));
    await fake.received("GET", "b");
    client().say("_\r\n");
    await first;
    await clock.advance(99);
    expect(connection.isOpen).toBe(true);
    await clock.advance(1);
    expect(await second).toBeInstanceOf(OperationTimeoutError);
  });

  test("leaves no timer behind once nothing is pending", async () => {
    const connection = await open({ operationTimeoutMs: 100 });
    fake.script = () => "+OK\r\n";
    for (let at = 0; at < 10; at++) await connection.command("SET", "k", "v");
    expect(clock.pending).toBe(1);
    await clock.advance(100);
    expect(clock.pending).toBe(0);
    expect(connection.isOpen).toBe(true);
  });
});

describe("a connection that is lost", () => {
  const lose: readonly (readonly [string, (client: FakeClient) => void])[] = [
    [
      "is reset in the middle of a reply",
      ({ socket }) => socket.write("$10\r\nabc", () => socket.resetAndDestroy()),
    ],
    ["ends in the middle of a reply", ({ socket }) => socket.end("$10\r\nabc")],
    ["is closed by the server", ({ socket }) => socket.destroy()],
    ["is half closed by the server", ({ socket }) => socket.end()],
  ];

  test.each(lose)("because it %s rejects everything with ConnectionError", async (_, act) => {
    const connection = await open();
    const pending = [connection.command("GET", "a"), connection.command("GET", "b"), read(connection, "c")];
    const failures = pending.map(failure);
    await fake.received("GET", "c");
    act(client());
    for (const error of await Promise.all(failures)) expect(error).toBeInstanceOf(ConnectionError);
    expect(connection.isOpen).toBe(false);
    expect(heard.closed.errors).toHaveLength(1);
    expect(await failure(connection.command("PING"))).toBeInstanceOf(ConnectionError);
    expect(await failure(read(connection, "k"))).toBeInstanceOf(ConnectionError);
    expect(clock.pending).toBe(0);
  });

  test.each(lose)("because it %s is reported even if nobody waits", async (_, act) => {
    const connection = await open();
    act(client());
    await until(() => heard.closed.errors.length === 1, { what: "the loss is reported" });
    expect(heard.closed.errors[0]).toBeInstanceOf(ConnectionError);
    expect(connection.isOpen).toBe(false);
  });

  test.each([
    ["is not RESP", "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["claims a string of 10^15 bytes", "$1000000000000000\r\n"],
    ["answers no request", "_\r\n+b\r\n"],
  ])("because what arrives %s reports it, and closes the connection", async (_, bytes) => {
    const connection = await open();
    const pending = connection.command("GET", "a").catch(() => {});
    await fake.received("GET", "a");
    client().say(bytes);
    await until(() => heard.closed.errors.length === 1, { what: "the connection is dropped" });
    expect(heard.closed.errors[0]?.message).toContain("does not speak the Redis protocol");
    await pending;
    await until(() => client().socket.destroyed, { what: "the server sees the connection end" });
  });
});

describe("opening", () => {
  const failToOpen = (settings: Partial<ConnectionSettings> = {}): Promise<XCacheError> =>
    failure(open(settings));

  test("at a port without a listener fails immediately and names the server", async () => {
    const endpoint = fake.endpoint;
    await fake.stop();
    const error = await failToOpen({ endpoint });
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain(nameOf(endpoint));
    expect(error.message).toContain("ECONNREFUSED");
    expect(clock.pending).toBe(0);
  });

  test("fails at the deadline when HELLO is never answered, and closes the connection", async () => {
    fake.script = () => undefined;
    const opening = failToOpen({ operationTimeoutMs: 100 });
    const { socket } = await fake.received("HELLO");
    await clock.advance(100);
    expect(await opening).toBeInstanceOf(OperationTimeoutError);
    await until(() => socket.destroyed, { what: "the server sees the connection end" });
    expect(clock.pending).toBe(0);
  });

  test("fails at connect_timeout when HELLO is never answered, if that is shorter", async () => {
    fake.script = () => undefined;
    const opening = failToOpen({ connectTimeoutMs: 100, operationTimeoutMs: 5_000 });
    const { socket } = await fake.received("HELLO");
    await clock.advance(100);
    await until(() => socket.destroyed, { what: "the server sees the connection end" });
    const error = await opening;
    expect(error).toBeInstanceOf(OperationTimeoutError);
    expect(error.message).toContain("connect_timeout (0.1 s)");
    expect(clock.pending).toBe(0);
  });

  test("fails at connect_timeout when the TLS handshake is never answered", async () => {
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    const arrived = new Promise((resolve) => silent.once("connection", resolve));
    try {
      await until(() => silent.listening, { what: "it listens" });
      const { port } = silent.address() as { port: number };
      const opening = failToOpen({ endpoint: { host: "127.0.0.1", port }, tls: {}, connectTimeoutMs: 100 });
      await arrived;
      await clock.advance(100);
      const error = await opening;
      expect(error).toBeInstanceOf(OperationTimeoutError);
      expect(error.message).toContain("connect_timeout");
    } finally {
      silent.close();
    }
  });

  test.each([
    [
      "speaks HTTP",
      "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
      "does not speak the Redis protocol",
    ],
    ["speaks TLS", "\u0015\u0003\u0003\u0000\u0002\u0002\u0028", "speaks TLS, and the connection was plain"],
  ])("fails with a hint when the server %s", async (_, answer, words) => {
    fake.script = () => answer;
    const error = await failToOpen();
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain(words);
    expect(error.hint).toContain("rediss://");
  });

  test.each([
    ["ends the connection", ({ socket }: FakeClient) => void socket.end()],
    ["resets the connection", ({ socket }: FakeClient) => void socket.resetAndDestroy()],
  ])("fails when the server %s instead of answering", async (_, act) => {
    fake.script = (_, from) => {
      act(from);
      return undefined;
    };
    expect(await failToOpen()).toBeInstanceOf(ConnectionError);
  });

  test.each([
    "-ERR unknown command `HELLO`, with args beginning with: `3`\r\n",
    "-NOPROTO unsupported protocol version\r\n",
  ])("continues in RESP2 with a server without RESP3: %j", async (refusal) => {
    fake.script = ([name, word], client) => {
      if (name === "HELLO") return refusal;
      return word === "ID" ? ":7\r\n" : greet([name as string, word as string], client);
    };
    const listener = { pushed: () => {}, closed: () => {} };
    const connection = await Connection.open({ ...SETTINGS, endpoint: fake.endpoint, database: 3 }, listener);
    expect([connection.plain, connection.clientId]).toEqual([expect.any(ReplyError), 7]);
    expect(fake.commands.map((command) => command.join(" "))).toEqual([
      "HELLO 3 SETNAME xcache",
      "SELECT 3",
      "SELECT 3",
      "CLIENT SETNAME xcache",
      "CLIENT ID",
    ]);
    connection.destroy(new ConnectionError("the test is over"));
  });

  test.each([
    ["while the server is silent", () => undefined],
    [
      "in the middle of the greeting",
      ([name]: readonly string[]) => (name === "HELLO" ? "+OK\r\n" : undefined),
    ],
  ])("can be aborted %s", async (_, script) => {
    fake.script = script;
    const controller = new AbortController();
    const listener = Object.assign(heard, { signal: controller.signal });
    const opening = failure(
      Connection.open({ ...SETTINGS, endpoint: fake.endpoint, clock, database: 3 }, listener),
    );
    const { socket } = await fake.received("SELECT");
    await settle();
    const reason = new ConnectionError("not wanted any more");
    controller.abort(reason);
    expect(await opening).toBe(reason);
    await until(() => socket.destroyed, { what: "the server sees the connection end" });
    expect(clock.pending).toBe(0);
  });

  test("is not even begun when it was aborted before", async () => {
    const reason = new ConnectionError("not wanted any more");
    const listener = Object.assign(heard, { signal: AbortSignal.abort(reason) });
    expect(await failure(Connection.open({ ...SETTINGS, endpoint: fake.endpoint }, listener))).toBe(reason);
    await settle();
    expect(fake.clients).toHaveLength(0);
  });
});

test("every connection has a distinct number", async () => {
  const [one, other] = [await open(), await open()];
  expect(one.id).toBeGreaterThan(0);
  expect(other.id).toBeGreaterThan(one.id);
});

test("a host that fails at each of its addresses is an error that names them all", () => {
  const failures = ["connect ECONNREFUSED ::1:6379", "connect ECONNREFUSED 127.0.0.1:6379"];
  const cause = new AggregateError(failures.map((message) => new Error(message)));
  const error = lost({ host: "localhost", port: 6379 }, cause, false);
  expect(error.message).toBe(`localhost:6379 cannot be reached: ${failures.join("; ")}`);
});

test("a refusal that repeats the password does not show it, however it is worded", async () => {
  fake.script = () => "-ERR cannot do HELLO 3 AUTH u s3cret\r\n";
  const error = await failure(open({ login: { username: "u", password: "s3cret" } }));
  expect(error.message).toContain("refused the connection: ERR cannot do HELLO 3 AUTH u ***");
  expect(inspect(error, { showHidden: true })).not.toContain("s3cret");
});

test("an endpoint is named as one would write it", () => {
  expect(nameOf({ host: "db.example", port: 6379 })).toBe("db.example:6379");
  expect(nameOf({ host: "::1", port: 6379 })).toBe("[::1]:6379");
  expect(nameOf({ path: "/run/redis.sock" })).toBe("/run/redis.sock");
});

describe("on a real server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  const openReal = (settings: Partial<ConnectionSettings> = {}): Promise<Connection> =>
    open({ endpoint: { host: "127.0.0.1", port: server.port }, clock: systemClock, ...settings });

  test("a set is seen by a get of the same tick, alone and together with others", async () => {
    const connection = await openReal();
    for (let round = 0; round < 20; round++) {
      const done = connection.command("SET", "one", String(round));
      const gets = [read(connection, "one"), read(connection, "one")];
      expect(await Promise.all(gets)).toEqual([String(round), String(round)]);
      expect(await done).toBe("OK");
      const alone = connection.command("SET", "one", `alone ${round}`);
      expect(await read(connection, "one")).toBe(`alone ${round}`);
      await alone;
    }
  });

  test("binary values of every size are returned exactly, many at a time", async () => {
    const connection = await openReal();
    const values = [0, 1, 100, 16_000, 70_000, 2_500_000].map((size) =>
      Buffer.alloc(size, "\0\r\n\u00ff", "latin1"),
    );
    await Promise.all(values.map((value, at) => connection.command("SET", `size:${at}`, value)));
    const got = await Promise.all(
      values.map(
        (_, at) =>
          new Promise<Buffer>((resolve, reject) =>
            connection.read(`size:${at}`, true, {
              resolve: (reply) => {
                const { bytes, start, end } = reply as Span;
                resolve(Buffer.from(bytes.subarray(start, end)));
              },
              reject,
            }),
          ),
      ),
    );
    expect(got.map((value, at) => value.equals(values[at]!))).toEqual(values.map(() => true));
  });

  test("a frozen server delays by the deadline, and everything pending is rejected", async () => {
    const connection = await openReal({ operationTimeoutMs: 150 });
    server.freeze();
    try {
      const began = performance.now();
      const failures = [failure(connection.command("PING")), failure(read(connection, "k"))];
      for (const error of await Promise.all(failures)) expect(error).toBeInstanceOf(OperationTimeoutError);
      expect(performance.now() - began).toBeLessThan(soon(1_000));
    } finally {
      server.thaw();
    }
  });

  test("a reply that arrived while this process was busy is not late", async () => {
    const connection = await openReal({ operationTimeoutMs: 100 });
    const reply = connection.command("PING");
    // Runs right after the command was sent.
    process.nextTick(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500));
    expect(await reply).toBe("PONG");
  });

  test("CLIENT TRACKING announces a change before the reply that follows it", async () => {
    const [reader, writer] = [
      await openReal(),
      await open({ endpoint: { host: "127.0.0.1", port: server.port } }),
    ];
    await reader.command("CLIENT", "TRACKING", "ON");
    await read(reader, "tracked");
    await writer.command("SET", "tracked", "new");
    await reader.command("PING");
    expect(heard.pushes).toEqual(["invalidate tracked"]);
  });
});

test.each([
  ["ERR", "ERR no ERR here", "ERR no *** here"],
  ["PASS", "WRONGPASS not a PASS", "WRONGPASS not a ***"],
  ["a", "NOPERM no permission at all", "NOPERM no permission ***t ***ll"],
])("a refusal keeps its first word, even if the password is %s", (password, words, shown) => {
  const error = refused(fake.endpoint, new ReplyError(words), password);
  expect(error.message).toContain(shown);
  expect((error.cause as ReplyError).code).toBe(words.split(" ")[0]);
});
