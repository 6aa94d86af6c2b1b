// The time a command takes on its way through a cluster, on a manual clock.
import { expect, test } from "vitest";
import { type CallHost, ClusterCall, ClusterRead } from "../../../../src/backends/kv/cluster/call.ts";
import { KvCommands } from "../../../../src/backends/kv/commands/commands.ts";
import { ReplyError } from "../../../../src/backends/kv/resp/reply.ts";
import type { Argument } from "../../../../src/backends/kv/resp/writer.ts";
import type { KvConnection, RetryableAnswer } from "../../../../src/backends/kv/server/kv-connection.ts";
import { ConnectionError, OperationTimeoutError } from "../../../../src/core/errors.ts";
import { ManualClock } from "../../../../src/testing/index.ts";
import { failure, stampFor } from "../../../support/opened.ts";

interface Sent {
  readonly args: readonly Argument[];
  readonly answer: RetryableAnswer;
}

/** A call on a server that a test controls. */
function stage({ operationTimeoutMs = 1_000, isConnected = true } = {}) {
  const clock = new ManualClock();
  const sent: Sent[] = [];
  const held = new Set<ClusterCall>();
  const outcome: { reply?: unknown; error?: Error } = {};
  const link = {
    connection: isConnected ? {} : undefined,
    send: (args: readonly Argument[], answer: RetryableAnswer) => sent.push({ args, answer }),
    sendAsking: (args: readonly Argument[], answer: RetryableAnswer) =>
      sent.push({ args: ["ASKING", ...args], answer }),
    read: (key: Argument, _isWatched: boolean, answer: RetryableAnswer) =>
      sent.push({ args: ["read", key], answer }),
  } as unknown as KvConnection;
  const route = { host: "asked", link: () => link };
  const host: CallHost = {
    translate: (announced) => announced,
    clock,
    operationTimeoutMs,
    route: () => route,
    routeAsking: () => route,
    moved: () => true,
    refreshSoon: () => {},
    refreshTopology: () => new Promise(() => {}),
    searchMaster: () => new Promise(() => {}),
    park: (each) => held.add(each),
    unpark: (each) => held.delete(each),
  };
  const begin = (command: readonly Argument[] | ClusterRead, changes: Partial<CallHost> = {}) => {
    const call = new ClusterCall({ ...host, ...changes }, 7, command, {
      resolve: (reply) => {
        outcome.reply = reply;
      },
      reject: (error) => {
        outcome.error = error;
      },
    });
    call.start();
    return call;
  };
  const records = new KvCommands(
    {
      send: (_key, args, answer) => new ClusterCall(host, 7, args, answer).start(),
      read: (key, isWatched, answer) =>
        new ClusterCall(host, 7, new ClusterRead(key, isWatched), answer).start(),
    },
    host,
  );
  return { clock, sent, held, outcome, begin, records };
}

const refusal = (message: string): ReplyError => new ReplyError(message);

test("a call that is answered immediately is never held and sets no timer", () => {
  const { clock, sent, held, outcome, begin } = stage();
  begin(new ClusterRead("k", true));
  expect([held.size, clock.pending]).toEqual([0, 0]);
  sent[0]!.answer.resolve("there");
  expect(outcome.reply).toBe("there");
});

test("ASKING is sent together with its command, so that neither is sent without the other", () => {
  const { sent, begin } = stage();
  const call = begin(new ClusterRead("k", true));
  sent[0]!.answer.reject(refusal("ASK 7 127.0.0.1:1"));
  expect(sent.slice(1)).toEqual([{ args: ["ASKING", "GET", "k"], answer: call }]);
});

/** Rejects every attempt as soon as it arrives, while time advances; returns when each was sent. */
async function refuseAll(
  { clock, sent }: ReturnType<typeof stage>,
  message: string | ((passed: number) => string),
  ms: number,
) {
  const began = clock.now();
  const times: number[] = [];
  for (let passed = 0; passed < ms; passed++) {
    while (times.length < sent.length) {
      times.push(clock.now() - began);
      const words = typeof message === "string" ? message : message(passed);
      sent[times.length - 1]!.answer.reject(refusal(words));
    }
    await clock.advance(1);
  }
  return times;
}

test("a refused command is retried for most of operation_timeout, with pauses, and ends with the last refusal", async () => {
  const played = stage();
  played.begin(["SET", "k", "v"]);
  const times = await refuseAll(played, "TRYAGAIN not now", 1_100);
  expect(times.length).toBeGreaterThan(8);
  expect(times.length).toBeLessThanOrEqual(17);
  expect(times.at(-1)).toBeGreaterThan(500);
  expect(times.at(-1)).toBeLessThan(1_000);
  expect(played.outcome.error?.message).toBe("TRYAGAIN not now");
  expect([played.held.size, played.clock.pending]).toEqual([0, 0]);
});

test("redirections are followed twice immediately, then with pauses, at most 16 times", async () => {
  const played = stage({ operationTimeoutMs: 60_000 });
  played.begin(new ClusterRead("k", true));
  const times = await refuseAll(played, "MOVED 7 127.0.0.1:1", 60_000);
  expect(times).toHaveLength(17);
  expect(times.slice(0, 4).map((at) => at > 0)).toEqual([false, false, false, true]);
  expect(played.outcome.error?.message).toMatch(/^MOVED/);
});

test("a command that waits for a connection is abandoned after operation_timeout", async () => {
  const { clock, sent, held, outcome, begin } = stage({ isConnected: false });
  begin(new ClusterRead("k", true));
  expect(held.size).toBe(1);
  await clock.advance(999);
  expect(outcome.error).toBeUndefined();
  await clock.advance(2);
  expect(outcome.error).toBeInstanceOf(OperationTimeoutError);
  expect([held.size, clock.pending]).toEqual([0, 0]);
  // Later answers change nothing.
  sent[0]!.answer.resolve("late");
  sent[0]!.answer.unsent?.(new ConnectionError("late"));
  expect([outcome.reply, clock.pending]).toEqual([undefined, 0]);
});

test("a command that waits to learn the owner of its slot is abandoned as well", async () => {
  const { clock, outcome, begin } = stage();
  begin(new ClusterRead("k", true), { route: () => undefined });
  await clock.advance(1_001);
  expect(outcome.error).toBeInstanceOf(OperationTimeoutError);
  expect(String(outcome.error?.cause)).toMatch(/slot 7/);
});

test("a command that was never sent is retried; one that may have been executed is not", async () => {
  const { clock, sent, outcome, begin } = stage();
  begin(["SET", "k", "v"]);
  sent[0]!.answer.unsent?.(new ConnectionError("not connected"));
  await clock.advance(20);
  expect(sent).toHaveLength(2);
  sent[1]!.answer.reject(new ConnectionError("lost"));
  await clock.advance(2_000);
  expect(sent).toHaveLength(2);
  expect(outcome.error?.message).toBe("lost");
});

test("a malformed redirection is returned to the caller", () => {
  const { sent, outcome, begin } = stage();
  begin(new ClusterRead("k", true));
  sent[0]!.answer.reject(refusal("MOVED somewhere"));
  expect(outcome.error?.message).toBe("MOVED somewhere");
});

test("a script that a server does not know yet gets no more time than one it knows", async () => {
  const played = stage();
  const { clock, sent, held, records } = played;
  let endedAt = 0;
  const began = clock.now();
  const error = failure(records.swap("k", undefined, stampFor("k"))).finally(() => {
    endedAt = clock.now() - began;
  });
  const isKnown = () => sent.some(({ args }) => args[0] === "EVAL");
  const answers = (passed: number) => (passed > 600 && !isKnown() ? "NOSCRIPT who" : "TRYAGAIN not now");
  const times = await refuseAll(played, answers, 2_500);
  expect(isKnown()).toBe(true);
  expect(times.at(-1)).toBeLessThan(1_000);
  expect((await error).cause).toEqual(refusal("TRYAGAIN not now"));
  expect(endedAt).toBeLessThanOrEqual(1_000);
  expect([held.size, clock.pending]).toEqual([0, 0]);
});

test("a script is not sent to a server that reports too late that it does not know it", async () => {
  const { clock, sent, records } = stage();
  const error = failure(records.swap("k", undefined, stampFor("k")));
  await clock.advance(1_000);
  sent[0]!.answer.reject(refusal("NOSCRIPT who"));
  expect(await error).toBeInstanceOf(OperationTimeoutError);
  expect(sent).toHaveLength(1);
});
