// A batch of reads that arrives record by record: it ends once, whatever its parts are.
import { expect, test, vi } from "vitest";
import { KvCommands } from "../../../../src/backends/kv/commands/commands.ts";
import type { Reply } from "../../../../src/backends/kv/resp/reply.ts";
import type { Answer } from "../../../../src/backends/kv/server/connection.ts";
import { systemClock } from "../../../../src/core/clock.ts";
import { CodecError } from "../../../../src/core/errors.ts";
import { encodeRecord } from "../../../../src/core/frame/frame.ts";
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
