// Answers that are complete once their last part has arrived: each settles once, whatever its parts are.
import { describe, expect, test, vi } from "vitest";
import { ManyRecords, PartAnswer, StampedRecord } from "../../../src/backends/memcached/read-answer.ts";
import { encodeRecord } from "../../../src/core/frame/frame.ts";
import { stamp } from "../../support/opened.ts";

const GOOD = Buffer.from(encodeRecord(stamp()));
const DAMAGED = Buffer.from("not a record");
type Part = Buffer | Error | undefined;

const CASES: readonly (readonly [string, readonly Part[]])[] = [
  ["the first is damaged", [DAMAGED, GOOD, undefined]],
  ["the last is damaged", [GOOD, undefined, DAMAGED]],
  ["several are damaged", [DAMAGED, DAMAGED, DAMAGED]],
  ["one is damaged and another fails", [DAMAGED, new Error("lost"), GOOD]],
  ["all fail", [new Error("lost"), new Error("lost"), new Error("lost")]],
];

test.each(CASES)("many records of which %s fail, once", (_, parts) => {
  const [done, failed] = [vi.fn(), vi.fn()];
  const many = new ManyRecords(["a", "b", "c"], done, failed);
  for (const [at, part] of parts.entries()) {
    const answer = new PartAnswer(many, at);
    if (part instanceof Error) answer.failed(part);
    else if (part === undefined) answer.missing();
    else answer.found(part, 0, part.length);
  }
  expect(failed).toHaveBeenCalledTimes(1);
  expect(done).not.toHaveBeenCalled();
});

describe("a record with its stamps", () => {
  test("fails once when several of them fail", () => {
    const taker = { take: vi.fn(() => false), fail: vi.fn() };
    const stamped = new StampedRecord("a", 2, taker);
    stamped.found(DAMAGED, 0, DAMAGED.length);
    stamped.failed(new Error("lost"));
    stamped.stamp(1, undefined);
    expect(taker.fail).toHaveBeenCalledTimes(1);
    expect(taker.take).not.toHaveBeenCalled();
  });
});
