// Deadlines of commands on a connection, as far as they depend on the commands before them.
import { expect, it } from "vitest";
import { ReplyQueue } from "../../../src/backends/wire/reply-queue.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

it("the time of commands behind a large one starts with its reply", async () => {
  const clock = new ManualClock();
  const queue = new ReplyQueue({ clock, limitMs: 1_000, holdsProcess: false, late() {} });
  await clock.advance(1);
  queue.add({ sentAt: 0, bytes: 4_000_000 });
  queue.add({ sentAt: 0, bytes: 100 });
  queue.sent();
  await clock.advance(1_500);
  expect(queue.isExtended(clock.now())).toBe(true);
  queue.shift();
  expect(queue.isExtended(clock.now())).toBe(true);
  await clock.advance(999);
  expect(queue.isExtended(clock.now())).toBe(true);
  await clock.advance(1);
  expect(queue.isExtended(clock.now())).toBe(false);
  queue.close();
});
