import { expect, test, vi } from "vitest";
import { atEndOfTurn } from "../../src/core/event-loop.ts";
import { settle } from "../../src/testing/index.ts";

test("callbacks deferred to the end of the turn run once, in order, after the turn's promises", async () => {
  const ran: string[] = [];
  atEndOfTurn(() => ran.push("first"));
  atEndOfTurn(() => ran.push("second"));
  await Promise.resolve().then(() => ran.push("promise"));
  await settle();
  expect(ran).toEqual(["promise", "first", "second"]);
});

test("all of them take one tick", async () => {
  const tick = vi.spyOn(process, "nextTick");
  for (let at = 0; at < 10; at++) atEndOfTurn(() => {});
  expect(tick).toHaveBeenCalledTimes(1);
  tick.mockRestore();
  await settle();
});

test("callbacks added while others run are deferred again", async () => {
  const ran: string[] = [];
  atEndOfTurn(() => {
    ran.push("outer");
    atEndOfTurn(() => ran.push("inner"));
  });
  atEndOfTurn(() => ran.push("next"));
  await settle();
  expect(ran).toEqual(["outer", "next", "inner"]);
});
