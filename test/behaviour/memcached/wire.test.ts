// One connection: which requests are sent together, how replies are handled, and what a faulty server costs.
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { BackendError, CodecError, ConnectionError, UnsupportedError } from "../../../src/core/errors.ts";
import { FakeServer, greet, type Script } from "../../support/memcached/fake-server.ts";
import { type OpenedBackend, opened } from "../../support/memcached/opened.ts";
import { failure, stampFor, timed, works } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { until } from "../../support/until.ts";

const TIMEOUT_MS = 200;
/** How much longer than the deadline a call may take on a busy machine. */
const SLACK_MS = 700;

const servers: FakeServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function fake(script: Script = greet): Promise<FakeServer> {
  const server = await FakeServer.start(script);
  servers.push(server);
  return server;
}

const quick = { operationTimeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS };

describe("requests of one tick", () => {
  it("are sent in one write, changes first, and reads are quiet and end with mn", async () => {
    const server = await fake((line, client) => {
      if (line.startsWith("ms")) return "HD\r\n";
      if (line.startsWith("mg") && line.includes("T-1")) return "EN\r\n";
      return greet(line, client);
    });
    await using backend = opened(server.url);
    await backend.connect();
    const [client] = server.clients;
    const before = client?.writes.length ?? 0;
    const [one, many, taken] = await Promise.all([
      backend.read("a"),
      backend.readMany(["b", "c"]),
      backend.take("d"),
      backend.write(stampFor("e")),
    ]);
    expect([one, many, taken]).toEqual([undefined, [undefined, undefined], undefined]);
    expect(client?.writes.length).toBe(before + 1);
    const sent =
      client?.writes
        .at(-1)
        ?.split("\r\n")
        .map((line) => line.replace(/ \S{12,} /, " ")) ?? [];
    expect(sent.filter((line) => /^m[gsnd]/.test(line))).toEqual([
      "mg b v T-1",
      "ms 11 b",
      "mg b v q O0",
      "mg b v q O1",
      "mg b v q O2",
      "mn",
    ]);
  });

  it("read a stamp once for many callers, and only within what was not sent yet", async () => {
    const server = await fake((line, client) => (line.startsWith("mg") ? "EN\r\n" : greet(line, client)));
    await using backend = opened(server.url);
    await backend.connect();
    const reads = (): number => server.clients[0]?.lines.filter((line) => line.startsWith("mg")).length ?? 0;
    await Promise.all(Array.from({ length: 50 }, () => backend.read("prefix!n")));
    expect(reads()).toBe(1);
    await backend.read("prefix!n");
    expect(reads()).toBe(2);
  });
});

describe("replies", () => {
  it("that arrive byte by byte are assembled", async () => {
    const server = await fake((line, client) => {
      const answer = greet(line, client) ?? (line.startsWith("mg") ? "EN\r\n" : undefined);
      for (const letter of answer ?? "") client.say(letter);
      return undefined;
    });
    await using backend = opened(server.url);
    expect(await backend.read("k")).toBeUndefined();
  });

  it("that refuse one of several reads fail those without a reply, and keep the connection", async () => {
    const server = await fake((line, client) => {
      if (line.endsWith("O0")) return "SERVER_ERROR out of memory writing get response\r\n";
      return greet(line, client);
    });
    await using backend = opened(server.url);
    const error = await failure(backend.readMany(["a", "b"]));
    expect(error).toMatchObject({ code: "STORE_FAILED", message: expect.stringContaining("out of memory") });
    server.script = (line, client) => (line.startsWith("mg") ? "EN\r\n" : greet(line, client));
    expect(await backend.read("a")).toBeUndefined();
    expect(server.clients.length).toBe(1);
  });

  it.each([
    ["garbage", "\x00\x01garbage\r\n"],
    ["the value of another question", "VA 1 O77\r\nx\r\nMN\r\n"],
    ["more than was asked for", "MN\r\nMN\r\nHD\r\n"],
    ["an answer to something else", "HD\r\n"],
  ])("that are %s end the connection, and another one is opened", async (_name, answer) => {
    const server = await fake((line, client) => (line === "mn" ? answer : greet(line, client)));
    await using backend = opened(server.url, quick);
    const { outcome, ms } = await timed(backend.readMany(["a", "b"]));
    if (outcome instanceof Error) expect(outcome).toBeInstanceOf(BackendError);
    expect(ms).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
    await until(() => server.clients[0]?.socket.destroyed === true, { what: "it is ended" });
    server.script = (line, client) => (line.startsWith("mg") ? "EN\r\n" : greet(line, client));
    await until(async () => (await backend.read("k")) === undefined, { what: "it works again" });
    expect(server.present.length).toBe(1);
  });
});

describe("a reply that does not match the command", () => {
  it.each<[string, string, (backend: OpenedBackend) => Promise<unknown>]>([
    ["a write that was not stored", "NS", (backend) => backend.write(stampFor("k"))],
    ["a write that met nothing", "EN", (backend) => backend.write(stampFor("k"))],
    ["a swap that found a miss", "EN", (backend) => backend.swap("k", undefined, stampFor("k"))],
    ["a taken record that was stored", "NS", (backend) => backend.take("k")],
  ])("is not a success: %s", async (_name, code, call) => {
    const server = await fake((line, client) => (/^m[sg] /.test(line) ? `${code}\r\n` : greet(line, client)));
    await using backend = opened(server.url, quick);
    await backend.connect();
    expect(await failure(call(backend))).toBeInstanceOf(ConnectionError);
    await until(() => server.clients[0]?.socket.destroyed === true, { what: "it is ended" });
  });
});

describe("a server that", () => {
  it("refuses the initial commands counts as down: pending invalidations do not count as refused", async () => {
    const server = await fake((line, client) => {
      if (line.startsWith("ms")) return "SERVER_ERROR out of memory storing object\r\n";
      return line.startsWith("mg") ? "EN\r\n" : greet(line, client);
    });
    await using backend = opened(server.url, {
      ...quick,
      onServer: ({ records }) => records.write(stampFor("note")),
    });
    const error = await failure(backend.take("k"));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error).toMatchObject({ hint: expect.stringContaining("-m") });
  });

  it("accepts and never answers costs a call its deadline, and is not retried in between", async () => {
    const server = await fake(() => undefined);
    await using backend = opened(server.url, quick);
    const { outcome, ms } = await timed(backend.read("k"));
    expect(outcome).toMatchObject({ code: "OPERATION_TIMEOUT" });
    expect(ms).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
    // By now it is known to be futile: nobody waits for it any more.
    await until(async () => (await timed(backend.read("k"))).ms < 20, { what: "calls fail at once" });
    server.script = (line, client) => (line.startsWith("mg") ? "EN\r\n" : greet(line, client));
    await until(async () => (await backend.read("k")) === undefined, { what: "it works again" });
  });

  it("stops answering halfway through a value costs the deadline, and its socket", async () => {
    const server = await fake((line, client) =>
      line.startsWith("mg") ? "VA 100\r\nhalf" : greet(line, client),
    );
    await using backend = opened(server.url, quick);
    await backend.connect();
    const { outcome, ms } = await timed(backend.read("k"));
    expect(outcome).toMatchObject({ code: "OPERATION_TIMEOUT" });
    expect(ms).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
    await until(() => server.clients[0]?.socket.destroyed === true, { what: "the socket is gone" });
  });

  it("resets every connection halfway through a value fails the call when its time is up", async () => {
    const server = await fake((line, client) => {
      if (!line.startsWith("mg")) return greet(line, client);
      client.socket.write("VA 100\r\nhalf", () => client.socket.resetAndDestroy());
      return undefined;
    });
    await using backend = opened(server.url, quick);
    const { outcome, ms } = await timed(backend.read("k"));
    expect(outcome).toBeInstanceOf(BackendError);
    expect(ms).toBeLessThan(TIMEOUT_MS + soon(SLACK_MS));
    server.script = (line, client) => (line.startsWith("mg") ? "EN\r\n" : greet(line, client));
    await until(async () => (await backend.read("k")) === undefined, { what: "it works again" });
  });

  it.each<[string, string, typeof ConnectionError | typeof UnsupportedError, RegExp]>([
    ["is no memcached", "-ERR unknown command\r\n", ConnectionError, /does not speak/],
    ["asks for a password", "CLIENT_ERROR unauthenticated\r\n", ConnectionError, /unauthenticated/],
    ["is too old", "STAT version 1.4.15\r\nSTAT time 1\r\nEND\r\n", UnsupportedError, /1\.4\.15/],
    ["removes nothing by its CAS", "STAT version 1.6.12\r\nEND\r\n", UnsupportedError, /1\.6\.12/],
    ["has too many clients", "ERROR Too many open connections\r\n", ConnectionError, /Too many open/],
    [
      "refuses to describe itself",
      "SERVER_ERROR out of memory\r\n",
      ConnectionError,
      /cannot be used.*out of memory/,
    ],
    ["does not describe itself", "END\r\n", ConnectionError, /does not speak/],
  ])("%s is rejected with a reason", async (_name, answer, type, words) => {
    const server = await fake((line, client) => (line === "stats" ? answer : greet(line, client)));
    await using backend = opened(server.url, quick);
    const error = await failure(backend.connect());
    expect(error).toBeInstanceOf(type);
    expect(error.message).toMatch(words);
  });

  it("was started without compare-and-swap is rejected", async () => {
    const server = await fake((line, client) =>
      line === "stats settings" ? "STAT cas_enabled no\r\nEND\r\n" : greet(line, client),
    );
    await using backend = opened(server.url);
    expect(await failure(backend.connect())).toMatchObject({
      code: "UNSUPPORTED",
      hint: expect.stringContaining("-C"),
    });
  });

  it("accepts only items of a limited size is not sent larger ones", async () => {
    const server = await fake((line, client) => {
      if (line === "stats settings") return "STAT item_size_max 2048\r\nEND\r\n";
      return line.startsWith("ms") ? "HD\r\n" : greet(line, client);
    });
    await using backend = opened(server.url);
    const record = {
      ...stampFor("k").record,
      kind: "entry",
      key: "k",
      namespaceStamps: [],
      tags: [],
    } as const;
    const entry = (bytes: number) => ({
      key: "k",
      record: { ...record, created: 0, staleUntil: 0, payload: { format: 0, bytes: new Uint8Array(bytes) } },
      lifetimeMs: 1_000,
    });
    await backend.write(entry(1_500));
    const error = await failure(backend.write(entry(2_000)));
    expect(error).toBeInstanceOf(CodecError);
    expect(error).toMatchObject({ code: "VALUE_TOO_LARGE", hint: expect.stringContaining("-I") });
    expect((await failure(backend.swap("k", undefined, entry(2_000)))).code).toBe("VALUE_TOO_LARGE");
    expect(server.clients[0]?.lines.filter((line) => line.startsWith("ms")).length).toBe(1);
  });
});

describe("disconnect", () => {
  it("rejects waiting calls immediately, and leaves no socket", async () => {
    const server = await fake((line, client) => (line.startsWith("mg") ? undefined : greet(line, client)));
    await using backend = opened(server.url, { operationTimeoutMs: 60_000 });
    await backend.connect();
    const reading = failure(backend.read("k"));
    const client = await server.received("mg");
    const { ms } = await timed(backend.disconnect());
    expect((await reading).code).toBe("DISCONNECTED");
    expect(ms).toBeLessThan(soon(SLACK_MS));
    if (!client.socket.destroyed) await once(client.socket, "close");
    expect(server.present).toEqual([]);
  });

  it("while connecting ends that too, and it can be connected again", async () => {
    const server = await fake(() => undefined);
    await using backend = opened(server.url, { operationTimeoutMs: 60_000 });
    const connecting = failure(backend.connect());
    await server.received("stats");
    await backend.disconnect();
    expect((await connecting).code).toBe("DISCONNECTED");
    await until(() => server.present.length === 0, { what: "no socket is left" });
    server.script = (line, client) => {
      if (line.startsWith("ms")) return "HD\r\n";
      return line.startsWith("mg") ? "EN\r\n" : greet(line, client);
    };
    await backend.connect();
    expect(await works(backend)).toBe(false);
  });
});
