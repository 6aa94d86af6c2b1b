import { expect, test } from "vitest";
import { UseLog } from "../../../../src/backends/memory/eviction/use-log.ts";

function drained(log: UseLog): string[] {
  const uses: string[] = [];
  log.drain((key, owner) => uses.push(`${owner}:${key}`));
  return uses;
}

test("a log returns what was added, in order and once", () => {
  const log = new UseLog();
  log.add("a", 1);
  log.add("b", 4_000_000_000);
  log.add("a", 1);
  expect(log.length).toBe(3);
  expect(drained(log)).toEqual(["1:a", "4000000000:b", "1:a"]);
  expect([log.length, drained(log)]).toEqual([0, []]);
});

test("a log is full after the same number of uses every time", () => {
  const log = new UseLog();
  const fill = (): number => {
    while (!log.isFull) log.add(`k${log.length}`, log.length);
    return log.length;
  };
  const most = fill();
  expect(most).toBeGreaterThanOrEqual(64);
  expect(drained(log)).toEqual(Array.from({ length: most }, (_, at) => `${at}:k${at}`));
  expect(log.isFull).toBe(false);
  expect(fill()).toBe(most);
});
