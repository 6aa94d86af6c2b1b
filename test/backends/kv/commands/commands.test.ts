// A batch of reads that arrives record by record ends once, whatever its parts are; the head of a record is read again when
// its connection is lost.
import { expect, test, vi } from "vitest";
import { KvCommands } from "../../../../src/backends/kv/commands/commands.ts";
import type { Reply } from "../../../../src/backends/kv/resp/reply.ts";
import type { Answer } from "../../../../src/backends/kv/server/connection.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { CodecError, ConnectionError } from "../../../../src/core/errors.ts";
import { encodeRecord } from "../../../../src/core/frame/frame.ts";
import { markLoss } from "../../../../src/core/resilience/store-failure.ts";
import { ManualClock } from "../../../../src/testing/manual-clock.ts";
import { stamp } from "../../../support/opened.ts";

const GOOD = Buffer.from(encodeRecord(stamp()));
const DAMAGED = Buffer.from("not a record");

test.each<[string, readonly (Reply | Error)[]]>([
  ["the first is damaged", [DAMAGED, GOOD, null]],
  ["the last is damaged", [GOOD, null, DAMAGED]],
  ["several are damaged", [DAMAGED, DAMAGED, DAMAGED]],
  ["one is damaged and another fails", [DAMAGED, new Error("lost"), GOOD]],
  ["all fail", [new Error("lost"), new Error("lost"), new Error("lost")]],
])("%s: the batch fails, once", (_, replies) => {
  const answers: Answer[] = [];
  const commands = new KvCommands(
    { send: () => {}, read: (_key, _isWatched, answer) => answers.push(answer) },
    { clock: systemClock, operationTimeoutMs: 1_000 },
  );
  const [done, failed] = [vi.fn(() => false), vi.fn()];
  commands.readManyThen(["a", "b", "c"], false, done, failed);
  for (const [at, reply] of replies.entries()) {
    if (reply instanceof Error) answers[at]?.reject(reply);
    else answers[at]?.resolve(reply);
  }
  expect(failed).toHaveBeenCalledTimes(1);
  expect(done).not.toHaveBeenCalled();
  if (replies[0] === DAMAGED) expect(failed.mock.calls[0]?.[0]).toBeInstanceOf(CodecError);
});

test("the head of a record is read again while connections are lost, as long as there is time", async () => {
  const clock = new ManualClock();
  const lost = markLoss(new ConnectionError("it closed the connection"));
  let losses = 3;
  const dues = new Set<number | undefined>();
  const send = (_key: string, [name]: readonly unknown[], answer: Answer): void => {
    dues.add(answer.due);
    if (losses > 0) answer.reject(lost);
    else answer.resolve(name === "STRLEN" ? GOOD.length : GOOD);
    if (name === "STRLEN") losses--;
  };
  const commands = new KvCommands({ send, read: () => {} }, { clock, operationTimeoutMs: 1_000 });
  expect(await commands.readHead("a", 0)).toMatchObject({ record: { kind: "stamp" } });
  expect(dues).toEqual(new Set([clock.now() + 1_000]));

  losses = Number.POSITIVE_INFINITY;
  const failed = expect(commands.readHead("a", 0)).rejects.toBe(lost);
  await clock.advance(1_000);
  await failed;
});
