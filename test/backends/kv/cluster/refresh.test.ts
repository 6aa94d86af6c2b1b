// How often a cluster is asked for its topology.
import { expect, test } from "vitest";
import { TopologyRefresh } from "../../../../src/backends/kv/cluster/refresh.ts";
import { ManualClock } from "../../../../src/testing/index.ts";

/** Lookups that the test ends one by one; `news` is the result of an unattended one. */
function stage({ attended = false, news = false } = {}) {
  const clock = new ManualClock();
  const lookups: { at: number; end(isNew: boolean): void; fail(error: Error): void }[] = [];
  const began = clock.now();
  const refresh = new TopologyRefresh(
    clock,
    () =>
      new Promise<boolean>((resolve, reject) => {
        lookups.push({ at: clock.now() - began, end: resolve, fail: reject });
        if (!attended) resolve(news);
      }),
  );
  return { clock, lookups, refresh };
}

test("the first lookup starts immediately, and one in flight serves every waiter", async () => {
  const { lookups, refresh } = stage({ attended: true });
  const waiting = [refresh.next(), refresh.next(), refresh.force()];
  expect(lookups).toHaveLength(1);
  lookups[0]!.end(true);
  await Promise.all(waiting);
  expect(lookups).toHaveLength(1);
});

test("requests made during a lookup cause one more, after a pause", async () => {
  const { clock, lookups, refresh } = stage({ attended: true });
  refresh.soon();
  refresh.soon();
  refresh.soon();
  lookups[0]!.end(true);
  await clock.advance(50);
  expect(lookups).toHaveLength(1);
  await clock.advance(100);
  expect(lookups).toHaveLength(2);
});

test("while nothing new is learnt the pauses grow, to at most a second and a quarter", async () => {
  const { clock, lookups, refresh } = stage();
  for (let passed = 0; passed < 20_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  const pauses = lookups.slice(1).map(({ at }, index) => at - lookups[index]!.at);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(75);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_260);
  expect(lookups.length).toBeLessThan(30);
  expect(new Set(pauses).size).toBeGreaterThan(5);
});

test("a certain change is looked up soon, however long the pauses have grown", async () => {
  const { clock, lookups, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  await clock.advance(130);
  const before = lookups.length;
  refresh.soon(true);
  await clock.advance(130);
  expect(lookups.length).toBe(before + 1);
});

test("a flood of certain changes causes about ten lookups a second", async () => {
  const { clock, lookups, refresh } = stage({ news: true });
  for (let passed = 0; passed < 2_000; passed += 5) {
    refresh.soon(true);
    await clock.advance(5);
  }
  expect(lookups.length).toBeLessThan(28);
});

test("the pauses are short again after a quiet period", async () => {
  const { clock, lookups, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  await clock.advance(2_500);
  const before = lookups.length;
  refresh.soon();
  await clock.advance(130);
  refresh.soon();
  await clock.advance(230);
  expect(lookups.length).toBe(before + 2);
});

test("between a failure and the next lookup, next() rejects immediately and force() waits", async () => {
  const { clock, lookups, refresh } = stage({ attended: true });
  const failed = refresh.next();
  lookups[0]!.fail(new Error("nobody answers"));
  await expect(failed).rejects.toThrow("nobody answers");
  await expect(refresh.next()).rejects.toThrow("nobody answers");
  const forced = refresh.force();
  await clock.advance(130);
  lookups[1]!.end(true);
  await forced;
  expect(refresh.ageMs).toBe(0);
});

test("relying on the topology causes a lookup about every second, and only while it lasts", async () => {
  const { clock, lookups, refresh } = stage();
  for (let passed = 0; passed < 10_000; passed += 100) {
    refresh.relyOn();
    await clock.advance(100);
  }
  expect(lookups.length).toBeGreaterThanOrEqual(8);
  expect(lookups.length).toBeLessThanOrEqual(13);
  await clock.advance(3_000);
  const before = lookups.length;
  await clock.advance(60_000);
  expect(lookups.length).toBe(before);
  expect(clock.pending).toBe(0);
});

test("lookups caused by relying on the topology do not delay a change", async () => {
  const { clock, lookups, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 100) {
    refresh.relyOn();
    await clock.advance(100);
  }
  const before = lookups.length;
  refresh.soon();
  await clock.advance(130);
  expect(lookups.length).toBe(before + 1);
});

test("closing rejects the waiters and leaves no timer", async () => {
  const { clock, lookups, refresh } = stage({ attended: true });
  const waiting = refresh.next();
  refresh.relyOn();
  refresh.soon();
  refresh.close(new Error("closed"));
  await expect(waiting).rejects.toThrow("closed");
  await expect(refresh.next()).rejects.toThrow("closed");
  lookups[0]!.end(true);
  await clock.advance(10_000);
  expect(lookups).toHaveLength(1);
  expect(clock.pending).toBe(0);
});
