// Invalidations are delivered, owed, or repeated while the outcome of a commit is not known.
import { describe, expect, test } from "vitest";
import { Invalidations } from "../../../src/db/tracking/invalidation.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

function scene() {
  const clock = new ManualClock();
  const delivered: string[] = [];
  const cache = {
    isDown: false,
    async invalidateTags(tags: readonly string[]): Promise<void> {
      if (cache.isDown) throw new Error("down");
      delivered.push(tags.join());
    },
  };
  return { clock, delivered, cache, invalidations: new Invalidations(cache, clock) };
}

describe("an invalidation that the cache refuses", () => {
  test("does not fail the commit, and is delivered before the next read", async () => {
    const { cache, delivered, invalidations } = scene();
    cache.isDown = true;
    await invalidations.deliver(["a"]);
    expect(await invalidations.isDelivered(["a"])).toBe(false);
    expect(await invalidations.isDelivered(["b"])).toBe(true);
    cache.isDown = false;
    expect(await invalidations.isDelivered(["a"])).toBe(true);
    expect(delivered).toEqual(["a"]);
    expect(await invalidations.isDelivered(["a"])).toBe(true);
    expect(delivered).toEqual(["a"]);
  });
});

test("a pending invalidation is not confirmed by one that began before it", async () => {
  const answers: ((isDone: boolean) => void)[] = [];
  const invalidateTags = () =>
    new Promise<void>((resolve, reject) => {
      answers.push((isDone) => (isDone ? resolve() : reject(new Error("down"))));
    });
  const invalidations = new Invalidations({ invalidateTags }, new ManualClock());
  const [earlier, later] = [invalidations.deliver(["a"]), invalidations.deliver(["a"])];
  answers[1]?.(false);
  await later;
  answers[0]?.(true);
  await earlier;
  const settled = invalidations.isDelivered(["a"]);
  expect(answers).toHaveLength(3);
  answers[2]?.(true);
  expect(await settled).toBe(true);
});

describe("a commit of unknown outcome", () => {
  test("is invalidated at once and every second for a minute", async () => {
    const { clock, delivered, invalidations } = scene();
    await invalidations.deliverUnknown(["a"], undefined);
    expect(delivered).toHaveLength(1);
    await clock.advance(59_000);
    expect(delivered).toHaveLength(60);
    await clock.advance(1_000);
    expect(delivered).toHaveLength(61);
    await clock.advance(60_000);
    expect(delivered).toHaveLength(61);
    expect(clock.pending).toBe(0);
  });

  test("is invalidated once more when its outcome becomes known, and then no more", async () => {
    const { clock, delivered, invalidations } = scene();
    let answer: (isOver: boolean) => void = () => {};
    const resolved = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    await invalidations.deliverUnknown(["a"], resolved);
    await clock.advance(2_000);
    expect(delivered).toHaveLength(3);
    answer(true);
    await clock.advance(60_000);
    expect(delivered).toHaveLength(4);
    expect(clock.pending).toBe(0);
  });

  test("goes on being invalidated when its connection is lost", async () => {
    const { clock, delivered, invalidations } = scene();
    await invalidations.deliverUnknown(["a"], Promise.resolve(false));
    await clock.advance(5_000);
    expect(delivered).toHaveLength(6);
  });

  test("is repeated together with others", async () => {
    const { clock, delivered, invalidations } = scene();
    await invalidations.deliverUnknown(["a"], undefined);
    await invalidations.deliverUnknown(["b", "a"], undefined);
    await clock.advance(1_000);
    expect(delivered).toEqual(["a", "b,a", "a,b"]);
  });
});
