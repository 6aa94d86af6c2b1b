// No connection or timer keeps an otherwise finished process alive, and every waiting call is answered.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeServer, sentinelFor } from "../../support/kv/fake-server.ts";
import { runKvProcess } from "../../support/kv/kv-process.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

/** A process ends within moments, even on a busy machine; a leaked timer or socket would keep it for longer. */
const MOMENTS_MS = 1_500;

describe("a process ends by itself", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  test("while it is connected, has been used and relies on pushes", async () => {
    const { code, words, errors, lingeredMs } = await runKvProcess(`
      const backend = open("${server.url}", { poolSize: 2 });
      await backend.connect();
      backend.push.onChange(() => {});
      await Promise.all([backend.read("a"), backend.read("b"), backend.ping()]);
      say("epoch " + (backend.push.epoch("a") > 0));
    `);
    expect({ code, words, errors }).toEqual({ code: 0, words: ["epoch true"], errors: "" });
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  test("while it follows the master that a sentinel names, and is subscribed to the sentinel", async () => {
    await using sentinel = await FakeServer.start(sentinelFor(server.port));
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      const listening = nextMessage();
      const backend = open("redis+sentinel://127.0.0.1:${sentinel.port}/main");
      await backend.connect();
      await listening;
      // A round trip later, the reply to the subscription has arrived as well.
      await backend.ping();
      say("connected");
    `,
      { event: sentinel.received("SUBSCRIBE") },
    );
    expect({ code, words, errors }).toEqual({ code: 0, words: ["connected"], errors: "" });
    expect(sentinel.commands).toContainEqual(["SUBSCRIBE", "+switch-master"]);
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  const connectTo = (port: number, settings: string): string => `
    import { Connection } from "./backends/kv/server/connection.js";
    const connection = await Connection.open({
      endpoint: { host: "127.0.0.1", port: ${port} }, tls: undefined, database: 0, clock: systemClock,
      connectTimeoutMs: 1_000, operationTimeoutMs: 60_000, readsTogether: true, ${settings}
    }, { pushed() {}, closed() {} });
  `;

  test("after waiting for its replies, however long these take", async () => {
    const questions = ["HELLO", ...Array.from({ length: 20 }, (_, at) => `ANYTHING ${at}`)];
    await using slow = await FakeServer.start(() => undefined);
    // After announcing that it waits, a process that nothing keeps alive would end long before a reply can arrive.
    const { code, words, errors } = await runKvProcess(
      `
      const sayThatWeWait = (question) => setImmediate(() => say(question));
      sayThatWeWait("HELLO");
      ${connectTo(slow.port, "")}
      for (const question of ${JSON.stringify(questions.slice(1))}) {
        const answer = connection.command(...question.split(" "));
        sayThatWeWait(question);
        say(String(await answer));
      }
    `,
      {
        onSaid: (word) => {
          if (!questions.includes(word)) return;
          slow.received(...word.split(" ")).then(
            (client) => client.say(word === "HELLO" ? "%0\r\n" : "+OK\r\n"),
            () => {},
          );
        },
      },
    );
    const heard = questions.flatMap((question) => [question, "OK"]).filter((_, at) => at !== 1);
    expect({ code, words, errors }).toEqual({ code: 0, words: heard, errors: "" });
  });

  test("without waiting for replies to background commands", async () => {
    await using silent = await FakeServer.start();
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      const received = nextMessage();
      ${connectTo(silent.port, "background: true")}
      connection.command("NEVER ANSWERED").catch(() => {});
      await received;
      say("asked");
    `,
      { event: silent.received("NEVER ANSWERED") },
    );
    expect({ code, words, errors }).toEqual({ code: 0, words: ["asked"], errors: "" });
    expect(silent.commands).toContainEqual(["NEVER ANSWERED"]);
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  test("while its store is gone and it keeps trying to reconnect", async () => {
    await using gone = await startRedis();
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      const backend = open("${gone.url}");
      await backend.connect();
      say("connected");
      let failures = 0;
      while (failures < 3) await backend.ping().then(() => {}, () => failures++);
      say("gone");
    `,
      {
        onSaid: (word) => {
          if (word === "connected") gone.kill().catch(() => {});
        },
      },
    );
    expect({ code, words, errors }).toEqual({ code: 0, words: ["connected", "gone"], errors: "" });
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  test("at once after disconnecting from a server that hangs, whatever is in flight", async () => {
    await using silent = await FakeServer.start(() => undefined);
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      const connecting = nextMessage();
      const backend = open("redis://127.0.0.1:${silent.port}", { operationTimeoutMs: 60_000, connectTimeoutMs: 60_000 });
      const reading = backend.read("k").catch((error) => say("read: " + error.code));
      await connecting;
      await backend.disconnect();
      await reading;
      say("disconnected");
    `,
      { event: silent.received("HELLO") },
    );
    expect({ code, words, errors }).toEqual({
      code: 0,
      words: ["read: DISCONNECTED", "disconnected"],
      errors: "",
    });
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });

  test("but not before a call that waits on a frozen server has failed", async () => {
    await using frozen = await startRedis();
    const { code, words, errors, lingeredMs } = await runKvProcess(
      `
      const backend = open("${frozen.url}");
      await backend.connect();
      say("connected");
      for (;;) {
        try {
          await backend.ping();
        } catch (error) {
          say(error.code);
          break;
        }
      }
    `,
      {
        onSaid: (word) => {
          if (word === "connected") frozen.freeze();
        },
      },
    );
    expect({ code, words, errors }).toEqual({
      code: 0,
      words: ["connected", "OPERATION_TIMEOUT"],
      errors: "",
    });
    expect(lingeredMs).toBeLessThan(soon(MOMENTS_MS));
  });
});
