// How often a cluster is asked for its topology.
import { expect, test } from "vitest";
import { TopologyRefresh } from "../../../../src/backends/kv/cluster/refresh.ts";
import { ManualClock } from "../../../../src/testing/index.ts";

/** Looks that the test ends one by one; `news` says what an unattended one finds. */
function stage({ attended = false, news = false } = {}) {
  const clock = new ManualClock();
  const looks: { at: number; end(isNew: boolean): void; fail(error: Error): void }[] = [];
  const began = clock.now();
  const refresh = new TopologyRefresh(
    clock,
    () =>
      new Promise<boolean>((resolve, reject) => {
        looks.push({ at: clock.now() - began, end: resolve, fail: reject });
        if (!attended) resolve(news);
      }),
  );
  return { clock, looks, refresh };
}

test("the first look is at once, and one that is under way serves all who wait", async () => {
  const { looks, refresh } = stage({ attended: true });
  const waiting = [refresh.next(), refresh.next(), refresh.force()];
  expect(looks).toHaveLength(1);
  looks[0]!.end(true);
  await Promise.all(waiting);
  expect(looks).toHaveLength(1);
});

test("what happens during a look makes for one more, after a pause", async () => {
  const { clock, looks, refresh } = stage({ attended: true });
  refresh.soon();
  refresh.soon();
  refresh.soon();
  looks[0]!.end(true);
  await clock.advance(50);
  expect(looks).toHaveLength(1);
  await clock.advance(100);
  expect(looks).toHaveLength(2);
});

test("while nothing new is learnt the pauses grow, to a second and a quarter at most", async () => {
  const { clock, looks, refresh } = stage();
  for (let passed = 0; passed < 20_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  const pauses = looks.slice(1).map(({ at }, index) => at - looks[index]!.at);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(75);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(1_260);
  expect(looks.length).toBeLessThan(30);
  expect(new Set(pauses).size).toBeGreaterThan(5);
});

test("what is certain is looked into soon, however long the pauses have grown", async () => {
  const { clock, looks, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  await clock.advance(130);
  const before = looks.length;
  refresh.soon(true);
  await clock.advance(130);
  expect(looks.length).toBe(before + 1);
});

test("a flood of certain news is still looked into ten times a second or so", async () => {
  const { clock, looks, refresh } = stage({ news: true });
  for (let passed = 0; passed < 2_000; passed += 5) {
    refresh.soon(true);
    await clock.advance(5);
  }
  expect(looks.length).toBeLessThan(28);
});

test("after some quiet the pauses are short again", async () => {
  const { clock, looks, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 10) {
    refresh.soon();
    await clock.advance(10);
  }
  await clock.advance(2_500);
  const before = looks.length;
  refresh.soon();
  await clock.advance(130);
  refresh.soon();
  await clock.advance(230);
  expect(looks.length).toBe(before + 2);
});

test("between a failure and the next look, callers are told at once; who insists waits", async () => {
  const { clock, looks, refresh } = stage({ attended: true });
  const failed = refresh.next();
  looks[0]!.fail(new Error("nobody answers"));
  await expect(failed).rejects.toThrow("nobody answers");
  await expect(refresh.next()).rejects.toThrow("nobody answers");
  const insisting = refresh.force();
  await clock.advance(130);
  looks[1]!.end(true);
  await insisting;
  expect(refresh.ageMs).toBe(0);
});

test("somebody who relies on what is known makes for a look about every second, and only as long as he does", async () => {
  const { clock, looks, refresh } = stage();
  for (let passed = 0; passed < 10_000; passed += 100) {
    refresh.relyOn();
    await clock.advance(100);
  }
  expect(looks.length).toBeGreaterThanOrEqual(8);
  expect(looks.length).toBeLessThanOrEqual(13);
  await clock.advance(3_000);
  const before = looks.length;
  await clock.advance(60_000);
  expect(looks.length).toBe(before);
  expect(clock.pending).toBe(0);
});

test("looking on behalf of somebody who relies does not make a change wait", async () => {
  const { clock, looks, refresh } = stage();
  for (let passed = 0; passed < 5_000; passed += 100) {
    refresh.relyOn();
    await clock.advance(100);
  }
  const before = looks.length;
  refresh.soon();
  await clock.advance(130);
  expect(looks.length).toBe(before + 1);
});

test("closing ends what waits and leaves no timer", async () => {
  const { clock, looks, refresh } = stage({ attended: true });
  const waiting = refresh.next();
  refresh.relyOn();
  refresh.soon();
  refresh.close(new Error("closed"));
  await expect(waiting).rejects.toThrow("closed");
  await expect(refresh.next()).rejects.toThrow("closed");
  looks[0]!.end(true);
  await clock.advance(10_000);
  expect(looks).toHaveLength(1);
  expect(clock.pending).toBe(0);
});
