// A reconnecting connection: opened when needed, reopened when lost, and no call waits for it past its deadline.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Reply } from "../../../src/backends/kv/resp/reply.ts";
import type { Argument } from "../../../src/backends/kv/resp/writer.ts";
import { Connection, type UnansweredRead } from "../../../src/backends/kv/server/connection.ts";
import { KvConnection } from "../../../src/backends/kv/server/kv-connection.ts";
import type { ReconnectingHost } from "../../../src/backends/wire/reconnecting.ts";
import { systemClock } from "../../../src/core/clock.ts";
import {
  BackendError,
  ConnectionError,
  OperationTimeoutError,
  type XCacheError,
} from "../../../src/core/errors.ts";
import { ManualClock, settle } from "../../../src/testing/index.ts";
import { bulk, FakeServer, greet } from "../../support/kv/fake-server.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const OPERATION_TIMEOUT_MS = 1_000;
const SETTINGS = {
  tls: undefined,
  username: undefined,
  password: undefined,
  database: 0,
  connectTimeoutMs: 5_000,
  operationTimeoutMs: OPERATION_TIMEOUT_MS,
  readsTogether: true,
};

type Open = ReconnectingHost<Connection>["open"];

let fake: FakeServer;
let clock: ManualClock;
let events: string[];
/** How many connections the link has requested. */
let attempts: number;
let links: KvConnection[];

beforeEach(async () => {
  fake = await FakeServer.start(answerAll);
  clock = new ManualClock();
  events = [];
  attempts = 0;
  links = [];
});

afterEach(async () => {
  for (const link of links) link.close();
  await fake.stop();
});

const answerAll: typeof greet = (command, client) =>
  greet(command, client) ?? (command[0] === "GET" ? bulk(command.join(" ")) : `+${command.join(" ")}\r\n`);

function newLink(open?: Open): KvConnection {
  const endpoint = fake.endpoint;
  const link = new KvConnection({
    clock,
    operationTimeoutMs: OPERATION_TIMEOUT_MS,
    open: (owner) => {
      attempts++;
      return open === undefined
        ? Connection.open({ ...SETTINGS, clock, endpoint }, { ...owner, pushed })
        : open(owner);
    },
    up: () => events.push("up"),
    down: (error, lost) => events.push(`down ${error.code}${lost === undefined ? "" : " after one"}`),
  });
  links.push(link);
  return link;
}

const pushed = (push: readonly Reply[]): void => {
  events.push(`push ${push.map(String).join(" ")}`);
};

const read = (link: KvConnection, key: string): Promise<Reply> =>
  new Promise((resolve, reject) => link.read(key, true, { resolve, reject }));

/** The error it fails with; call this before it can fail. */
const failure = (promise: Promise<unknown>): Promise<XCacheError> =>
  promise.then(
    (value) => new Error(`it succeeded with ${String(value)}`) as XCacheError,
    (error: XCacheError) => error,
  );

/** An attempt whose outcome the test decides. */
function held(): { open: Open; fail(error: Error): void } {
  const rejects: ((error: Error) => void)[] = [];
  return {
    open: () =>
      new Promise((_, reject) => {
        rejects.push(reject);
      }),
    fail: (error) => rejects.shift()?.(error),
  };
}

const gone = new ConnectionError("gone");

/** An argument that exhausts the memory. */
const UNWRITABLE: Argument = {
  length: 1,
  writeTo: () => {
    throw new RangeError("Array buffer allocation failed");
  },
};

describe("a link", () => {
  test("opens no connection before it is needed", async () => {
    newLink();
    await settle();
    expect(fake.clients).toHaveLength(0);
    expect(attempts).toBe(0);
  });

  test("opens one connection for all callers, and sends the waiting commands in order", async () => {
    const link = newLink();
    const all = [link.command("A"), link.connect(), link.command("B"), link.connect(), read(link, "k")];
    expect(link.waiting).toBe(3);
    expect((await Promise.all(all)).map(String)).toEqual(["A", "undefined", "B", "undefined", "GET k"]);
    expect(fake.clients).toHaveLength(1);
    expect(fake.commands.slice(1)).toEqual([["A"], ["B"], ["GET", "k"]]);
    expect(events).toEqual(["up"]);
    expect(link.waiting).toBe(0);
    expect(link.connection?.isOpen).toBe(true);
  });

  test("emits pushes, including those that arrive while the connection is prepared", async () => {
    fake.script = (command, client) =>
      command[0] === "HELLO" ? `${greet(command, client)}>1\r\n+early\r\n` : answerAll(command, client);
    const link = newLink();
    await link.connect();
    fake.clients[0]?.say(">1\r\n+later\r\n");
    await until(() => events.length === 3, { what: "both are emitted" });
    expect(events).toEqual(["push early", "up", "push later"]);
  });
});

describe("a lost connection", () => {
  test("is reopened automatically, after a short pause", async () => {
    const link = newLink();
    await link.connect();
    fake.clients[0]?.socket.destroy();
    await until(() => link.connection === undefined, { what: "the loss is seen" });
    expect(events).toEqual(["up", "down CONNECTION_FAILED after one"]);
    await clock.advance(20);
    await until(() => link.connection !== undefined, { what: "it is back" });
    expect(String(await link.command("A"))).toBe("A");
    expect(fake.clients).toHaveLength(2);
  });

  test("rejects what was sent, with the reason; calls made during the pause wait for the next one", async () => {
    const link = newLink();
    await link.connect();
    fake.script = () => undefined;
    const sent = failure(link.command("A"));
    const client = await fake.received("A");
    client.socket.resetAndDestroy();
    expect(await sent).toBeInstanceOf(ConnectionError);
    fake.script = answerAll;
    const waiting = [link.command("B"), read(link, "k")];
    expect(link.waiting).toBe(2);
    await clock.advance(20);
    expect((await Promise.all(waiting)).map(String)).toEqual(["B", "GET k"]);
  });

  test("that is not replaced in time rejects the waiting calls with the reason of the latest attempt", async () => {
    let fails = false;
    const link = newLink(async (owner) => {
      if (fails) throw gone;
      return Connection.open({ ...SETTINGS, clock, endpoint: fake.endpoint }, { ...owner, pushed });
    });
    await link.command("A");
    fails = true;
    link.connection?.destroy(gone);
    const waiting = failure(link.command("B"));
    await clock.advance(OPERATION_TIMEOUT_MS);
    expect(await waiting).toBeInstanceOf(ConnectionError);
    expect((await waiting).message).toContain("operation_timeout; the latest attempt: gone");
    // By now attempts have failed for longer than a call would wait.
    expect(await failure(link.command("C"))).toBe(gone);
  });

  test("that is lost again and again: a resent read keeps its deadline", async () => {
    const link: KvConnection = newLink(async (owner) => {
      const unanswered = (reads: readonly UnansweredRead[]): void =>
        link.readAgain(reads, clock.now(), OPERATION_TIMEOUT_MS);
      const settings = { ...SETTINGS, clock, endpoint: fake.endpoint };
      const connection = await Connection.open(settings, { ...owner, pushed, unanswered });
      connection.isInUse = true;
      return connection;
    });
    await link.connect();
    fake.script = (command, client) => {
      if (command[0] === "GET") client.socket.resetAndDestroy();
      return greet(command, client);
    };
    let outcome: unknown;
    read(link, "k").catch((error: unknown) => {
      outcome = error;
    });
    const gets = (): number => fake.commands.filter(([name]) => name === "GET").length;
    await until(() => gets() > 0 && link.connection === undefined, { what: "the first one is lost" });
    await until(() => clock.advance(50).then(() => outcome !== undefined), { what: "it fails" });
    expect(outcome).toBeInstanceOf(BackendError);
  });

  test("that had answered is reopened after the shortest pause, however often", async () => {
    const link = newLink();
    for (let times = 0; times < 10; times++) {
      await link.command("A");
      link.connection?.destroy(gone);
      await clock.advance(20);
      await until(() => link.connection !== undefined, { what: "it is back" });
    }
    expect(attempts).toBe(11);
  });

  test("to a server that does not answer is reopened too", async () => {
    const link = newLink();
    await link.connect();
    fake.script = () => undefined;
    const sent = failure(link.command("A"));
    await fake.received("A");
    await clock.advance(OPERATION_TIMEOUT_MS);
    expect(await sent).toBeInstanceOf(OperationTimeoutError);
    fake.script = answerAll;
    await clock.advance(20);
    await until(() => link.connection !== undefined, { what: "it is back" });
    expect(String(await link.command("B"))).toBe("B");
  });
});

describe("attempts that fail", () => {
  test("are retried with growing pauses, up to half a second", async () => {
    const began: number[] = [];
    newLink(async () => {
      began.push(clock.now());
      throw gone;
    })
      .connect()
      .catch(() => {});
    await clock.advance(20_000);
    const pauses = began.slice(1).map((at, index) => at - began[index]!);
    for (const [index, pause] of pauses.entries()) {
      const longest = Math.min(20 * 2 ** index, 500);
      expect(pause).toBeGreaterThanOrEqual(longest / 2);
      expect(pause).toBeLessThanOrEqual(longest);
    }
    expect(pauses.length).toBeGreaterThan(12);
    expect(clock.pending).toBe(1);
  });

  test("reject waiting calls immediately, and calls made before the next one", async () => {
    const attempt = held();
    const link = newLink(attempt.open);
    const waiting = [failure(link.connect()), failure(link.command("A")), failure(read(link, "k"))];
    await settle();
    attempt.fail(gone);
    expect(await Promise.all(waiting)).toEqual([gone, gone, gone]);
    expect(await failure(link.command("B"))).toBe(gone);
    expect(attempts).toBe(1);
    expect(events).toEqual(["down CONNECTION_FAILED"]);
  });

  test("do not prevent an immediate attempt on request", async () => {
    const attempt = held();
    const link = newLink(attempt.open);
    const first = failure(link.connect());
    attempt.fail(gone);
    await first;
    const second = failure(link.connect());
    await settle();
    expect(attempts).toBe(2);
    attempt.fail(gone);
    await second;
    // The pause that the second one began counts; the first is forgotten.
    expect(clock.pending).toBe(1);
  });

  test("continue automatically when a rejected caller retries immediately", async () => {
    const attempt = held();
    const link = newLink(attempt.open);
    const again = link.command("A").catch(() => link.connect());
    await settle();
    attempt.fail(gone);
    await settle();
    attempt.fail(gone);
    await expect(again).rejects.toBe(gone);
    await clock.advance(2_000);
    expect(attempts).toBeGreaterThan(2);
  });

  test("include connections that end as soon as they are open", async () => {
    const link = newLink(async (owner) => {
      const connection = await Connection.open(
        { ...SETTINGS, clock, endpoint: fake.endpoint },
        { ...owner, pushed },
      );
      setImmediate(() => connection.destroy(gone));
      return connection;
    });
    await link.connect();
    for (let passed = 0; passed < 10_000; passed += 100) {
      await until(() => link.connection === undefined, { what: "the loss is seen" });
      await clock.advance(100);
      await settle();
    }
    expect(attempts).toBeLessThan(50);
  });
});

describe("a command that waits for a connection", () => {
  test("waits for nearly operation_timeout, and is never sent later", async () => {
    let release: (() => void) | undefined;
    const link = newLink(async (owner) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return Connection.open({ ...SETTINGS, clock, endpoint: fake.endpoint }, { ...owner, pushed });
    });
    const early = [failure(link.command("SET", "k", "early")), failure(read(link, "early"))];
    await clock.advance(600);
    const late = link.command("A", "k", "late");
    await clock.advance(379);
    expect(link.waiting).toBe(3);
    await clock.advance(1);
    for (const error of await Promise.all(early)) expect(error).toBeInstanceOf(OperationTimeoutError);
    expect(link.waiting).toBe(1);
    release?.();
    expect(await late).toBe("A k late");
    expect(fake.commands.slice(1)).toEqual([["A", "k", "late"]]);
    await clock.advance(2_000);
    expect(clock.pending).toBe(0);
  });

  test("is sent even if a command before it cannot be, which alone is rejected", async () => {
    const link = newLink();
    const before = link.command("A");
    const failed = failure(link.command("SET", "k", UNWRITABLE));
    const after = link.command("B");
    expect((await Promise.all([before, after])).map(String)).toEqual(["A", "B"]);
    expect(await failed).toBeInstanceOf(RangeError);
    expect(events).toEqual(["up"]);
  });

  test("can have its own deadline, and is then reported as not sent", async () => {
    const link = newLink(held().open);
    const outcomes: string[] = [];
    const answer = (name: string, due: number): Parameters<KvConnection["send"]>[1] => ({
      due: clock.now() + due,
      resolve: () => outcomes.push(`${name} resolved`),
      reject: () => outcomes.push(`${name} rejected`),
      unsent: (error) => outcomes.push(`${name} unsent: ${error.code}`),
    });
    link.send(["A"], answer("long", 500));
    link.send(["B"], answer("short", 100));
    link.send(["C"], answer("middle", 300));
    await clock.advance(100);
    expect(outcomes).toEqual(["short unsent: OPERATION_TIMEOUT"]);
    await clock.advance(200);
    expect(outcomes).toEqual(["short unsent: OPERATION_TIMEOUT", "middle unsent: OPERATION_TIMEOUT"]);
    link.close();
    expect(outcomes.at(-1)).toBe("long unsent: DISCONNECTED");
  });
});

describe("renewing", () => {
  const moved = new ConnectionError("the master has moved");

  test("drops the current connection and opens another without a pause", async () => {
    const link = newLink();
    await link.connect();
    const first = link.connection;
    link.renew(moved);
    expect(first?.isOpen).toBe(false);
    const waiting = link.command("A");
    expect(String(await waiting)).toBe("A");
    expect(link.connection).not.toBe(first);
    expect(events).toEqual(["up", "down CONNECTION_FAILED after one", "up"]);
  });

  test("abandons an attempt in flight; calls that wait for it keep waiting", async () => {
    fake.script = () => undefined;
    const link = newLink();
    const waiting = link.command("A");
    const { socket } = await fake.received("HELLO");
    fake.script = answerAll;
    link.renew(moved);
    expect(String(await waiting)).toBe("A");
    await until(() => socket.destroyed, { what: "the first attempt is given up" });
    expect(events).toEqual(["up"]);
  });

  test("ends a pause between attempts", async () => {
    let fails = true;
    const link = newLink(async (owner) => {
      if (fails) throw gone;
      return Connection.open({ ...SETTINGS, clock, endpoint: fake.endpoint }, { ...owner, pushed });
    });
    await failure(link.connect());
    await clock.advance(5_000);
    fails = false;
    link.renew(moved);
    expect(String(await link.command("A"))).toBe("A");
  });

  test("again and again pauses as after failures, until there has been no renewal for a while", async () => {
    const link = newLink();
    await link.connect();
    for (let times = 0; times < 3; times++) {
      link.renew(moved);
      await link.connect();
    }
    expect(attempts).toBe(4);
    link.renew(moved);
    // Not even one more renewal ends the pause.
    link.renew(moved);
    const waiting = link.command("A");
    expect(attempts).toBe(4);
    await clock.advance(40);
    expect(String(await waiting)).toBe("A");
    expect(attempts).toBe(5);
    await clock.advance(5_001);
    link.renew(moved);
    expect(String(await link.command("B"))).toBe("B");
  });

  test("again and again ends an attempt in flight for good: calls that wait for it are rejected", async () => {
    fake.script = () => undefined;
    const link = newLink();
    const waiting = failure(link.command("A"));
    for (let times = 1; times <= 4; times++) {
      await fake.client(times - 1);
      expect(attempts).toBe(times);
      link.renew(moved);
    }
    expect(await waiting).toBe(moved);
    expect(attempts).toBe(4);
    expect(clock.pending).toBe(1);
  });

  test("does nothing to an unused link", async () => {
    newLink().renew(moved);
    await settle();
    expect(attempts).toBe(0);
  });
});

describe("closing", () => {
  test("rejects sent, waiting and new calls", async () => {
    const link = newLink();
    await link.connect();
    fake.script = () => undefined;
    const sent = [failure(link.command("A")), failure(read(link, "k"))];
    await fake.received("GET");
    link.close();
    link.close();
    const after = [failure(link.command("B")), failure(read(link, "k")), failure(link.connect())];
    for (const error of await Promise.all([...sent, ...after]))
      expect(error).toMatchObject({ name: "ConnectionError", code: "DISCONNECTED" });
    await until(() => fake.present.length === 0, { what: "the server sees the connection end" });
    await clock.advance(10_000);
    expect(fake.clients).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  test("ends an attempt in flight, and its socket immediately", async () => {
    fake.script = () => undefined;
    const link = newLink();
    const waiting = [failure(link.command("A")), failure(link.connect())];
    await fake.received("HELLO");
    link.close();
    for (const error of await Promise.all(waiting)) expect(error).toMatchObject({ code: "DISCONNECTED" });
    await until(() => fake.present.length === 0, { what: "the server sees the connection end" });
    expect(clock.pending).toBe(0);
    expect(events).toEqual([]);
  });

  test("ends a connection that is just being opened", async () => {
    let release: (() => void) | undefined;
    const link = newLink(async (owner) => {
      const connection = await Connection.open(
        { ...SETTINGS, clock, endpoint: fake.endpoint },
        { ...owner, pushed },
      );
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return connection;
    });
    const waiting = failure(link.connect());
    await until(() => release !== undefined, { what: "it is being prepared" });
    link.close();
    release?.();
    expect(await waiting).toMatchObject({ code: "DISCONNECTED" });
    await until(() => fake.present.length === 0, { what: "the server sees the connection end" });
    expect(link.connection).toBeUndefined();
    expect(events).toEqual([]);
  });

  test("leaves no timer behind", async () => {
    const link = newLink(async () => {
      throw gone;
    });
    await failure(link.connect());
    expect(clock.pending).toBe(1);
    link.close();
    expect(clock.pending).toBe(0);
  });
});

test("a real server may be killed and frozen: the link recovers by itself", async () => {
  await using server = await startRedis();
  const endpoint = { host: "127.0.0.1", port: server.port };
  const settings = { ...SETTINGS, clock: systemClock, endpoint, operationTimeoutMs: 200 };
  const link = new KvConnection({
    clock: systemClock,
    operationTimeoutMs: 200,
    open: (owner) => Connection.open(settings, { ...owner, pushed }),
  });
  links.push(link);
  const works = async (): Promise<boolean> => String(await link.command("PING")) === "PONG";
  expect(await works()).toBe(true);
  await server.kill();
  expect(await failure(link.command("PING"))).toBeInstanceOf(ConnectionError);
  await server.start();
  await until(works, { what: "it is back after a crash" });
  server.freeze();
  expect(await failure(link.command("PING"))).toBeInstanceOf(OperationTimeoutError);
  // Not even the attempts that follow hang for longer than allowed.
  expect(await failure(link.connect())).toBeInstanceOf(OperationTimeoutError);
  server.thaw();
  await until(works, { what: "it is back after a freeze" });
});
