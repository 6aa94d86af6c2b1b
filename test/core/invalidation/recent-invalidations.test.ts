import { describe, expect, it } from "vitest";
import type { PendingInvalidation } from "../../../src/core/invalidation/outbox.ts";
import { RecentInvalidations } from "../../../src/core/invalidation/recent-invalidations.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const remedy = (key: string): PendingInvalidation => ({ key, stampMs: undefined, root: "p!n" });

describe("recent invalidations", () => {
  it("are listed since a given time", async () => {
    const clock = new ManualClock();
    const recent = new RecentInvalidations(clock);
    recent.add([remedy("a")]);
    await clock.advance(1_000);
    const moment = clock.now();
    recent.add([remedy("b"), remedy("c")]);
    expect(recent.since(moment)?.map(({ key }) => key)).toEqual(["b", "c"]);
    expect(recent.since(moment - 1_000)?.map(({ key }) => key)).toEqual(["a", "b", "c"]);
  });

  it("are unknown, not empty, once forgotten after two minutes", async () => {
    const clock = new ManualClock();
    const recent = new RecentInvalidations(clock);
    const moment = clock.now();
    recent.add([remedy("a")]);
    await clock.advance(121_000);
    recent.add([remedy("b")]);
    expect(recent.since(moment)).toBeUndefined();
    expect(recent.since(moment + 1)?.map(({ key }) => key)).toEqual(["b"]);
  });

  it("are watched for two minutes", async () => {
    const clock = new ManualClock();
    const recent = new RecentInvalidations(clock);
    expect(recent.isWatched).toBe(false);
    recent.add([remedy("a")]);
    await clock.advance(119_000);
    expect(recent.isWatched).toBe(true);
    await clock.advance(2_000);
    expect(recent.isWatched).toBe(false);
  });

  it("are unknown when there were too many", () => {
    const clock = new ManualClock();
    const recent = new RecentInvalidations(clock);
    recent.add(Array.from({ length: 50_001 }, (_, at) => remedy(`k${at}`)));
    expect(recent.since(clock.now())).toBeUndefined();
  });

  it("are known to be none when nothing was invalidated, however long ago", () => {
    expect(new RecentInvalidations(new ManualClock()).since(1)).toEqual([]);
  });
});
