// What a process adds to the fleet's history: whatever the store does, and however long the rows are kept.
import { describe, expect, it } from "vitest";
import { type CounterRow, type Counters, LocalCounters } from "../../../src/core/counters.ts";
import { LocalRecords, type OwnRecords } from "../../../src/core/own-records.ts";
import type { CacheStats } from "../../../src/core/stats.ts";
import { History } from "../../../src/metrics/history/history.ts";
import { ChangeMarks } from "../../../src/metrics/recording/change-marks.ts";
import { FunctionCounts } from "../../../src/metrics/recording/function-counts.ts";
import { Recorder } from "../../../src/metrics/recording/recorder.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const DAY_MS = 86_400_000;
const OWN = {} as CacheStats;

/** Counters that can be made to fail, and that record how often they are written. */
class FailingCounters implements Counters {
  readonly #rows: LocalCounters;
  fails = false;
  writes = 0;

  constructor(clock: ManualClock) {
    this.#rows = new LocalCounters(clock);
  }

  now(): number {
    return this.#rows.now();
  }

  async add(name: string, row: CounterRow, lifeMs: number): Promise<void> {
    this.writes++;
    if (this.fails) throw new Error("down");
    this.#rows.add(name, row, lifeMs);
  }

  read(names: readonly string[]): ReturnType<Counters["read"]> {
    return this.#rows.read(names);
  }
}

/** The other dependencies of a history. */
const around = (clock: ManualClock, records: OwnRecords = new LocalRecords(clock)) => ({
  clock,
  records,
  functions: new FunctionCounts(clock),
  marks: new ChangeMarks(),
  breaker: () => "closed",
  alerts: () => [],
});

function keeping() {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const recorder = new Recorder(clock);
  const counters = new FailingCounters(clock);
  const records = new LocalRecords(clock);
  const history = new History({ ...around(clock, records), recorder, counters, retentionMs: 7 * DAY_MS });
  const leave = history.attach();
  const count = (): void => {
    recorder.hits++;
    if (recorder.isAwaited) recorder.wake();
  };
  return { clock, recorder, counters, records, history, leave, count };
}

it("includes the time covered, so that rates do not depend on when it was reported", async () => {
  const { clock, history, count } = keeping();
  for (let at = 0; at < 40; at++) {
    count();
    await clock.advance(500);
  }
  const { history: minutes, activeSeconds } = await history.fleet(OWN, 600);
  expect(activeSeconds).toBeGreaterThan(19);
  expect(activeSeconds).toBeLessThanOrEqual(20);
  expect(minutes.map((minute) => minute.activeSeconds)).toEqual([activeSeconds]);
});

describe("a report that the store did not accept", () => {
  it("is retried every ten seconds, even by a process that has become idle", async () => {
    const { clock, counters, history, count } = keeping();
    counters.fails = true;
    count();
    await clock.advance(35_000);
    expect(counters.writes).toBe(3);
    expect(history.hasUnwritten).toBe(true);
    counters.fails = false;
    await clock.advance(10_000);
    expect(counters.writes).toBe(4);
    expect(history.hasUnwritten).toBe(false);
    await clock.advance(600_000);
    expect(counters.writes).toBe(4);
    expect(await history.fleet(OWN, 3_600)).toMatchObject({ totalHits: 1, processes: 1 });
  });

  it("is not retried by a cache that has left, and leaves no timer", async () => {
    const { clock, counters, leave, count } = keeping();
    counters.fails = true;
    count();
    clock.after(10_000, leave);
    await clock.advance(60_000);
    expect(counters.writes).toBe(1);
    expect(clock.pending).toBe(0);
  });
});

describe("the minutes", () => {
  it("of a hundred days, all of them used, can be read at once", async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const now = clock.now();
    const minutes = 100 * 24 * 60;
    const row: CounterRow = [2, 1, 1];
    const counters: Counters = {
      now: () => now,
      add: () => {},
      read: (names) => names.map(() => row),
    };
    const history = new History({
      recorder: new Recorder(clock),
      counters,
      ...around(clock),
      retentionMs: 100 * DAY_MS,
    });
    const stats = await history.fleet(OWN, Number.POSITIVE_INFINITY);
    expect(stats).toMatchObject({ processes: 2, totalHits: minutes + 1, hitRate: 0.5 });
    expect(stats.history).toHaveLength(minutes + 1);
  });

  it("count a process once each, even if it reports several times in one, or across its end", async () => {
    const { clock, history, count } = keeping();
    for (let times = 0; times < 9; times++) {
      count();
      await clock.advance(10_000);
    }
    const { processes, history: minutes } = await history.fleet(OWN, 3_600);
    expect(processes).toBe(1);
    expect(minutes.map((minute) => [minute.processes, minute.totalHits])).toEqual([
      [1, 5],
      [1, 4],
    ]);
  });
});

describe("an answer", () => {
  /** Counters whose next addition ends when the test lets it. */
  function slowly(counters: FailingCounters): { taken(): void; refused(): void } {
    const add = counters.add.bind(counters);
    let end: (fails: boolean) => void = () => {};
    const ended = new Promise<boolean>((resolve) => (end = resolve));
    counters.add = async (name, row, lifeMs) => {
      counters.add = add;
      counters.fails = await ended;
      try {
        await add(name, row, lifeMs);
      } finally {
        counters.fails = false;
      }
    };
    return { taken: () => end(false), refused: () => end(true) };
  }

  it("includes what was counted a moment ago, and writes nothing", async () => {
    const { counters, history, count } = keeping();
    for (let times = 1; times <= 5; times++) {
      count();
      expect(await history.fleet(OWN, 3_600)).toMatchObject({ totalHits: times, processes: 1 });
    }
    expect(counters.writes).toBe(0);
  });

  it.each(["taken", "refused"] as const)(
    "includes a report in flight exactly once, even if it is %s in the end",
    async (outcome) => {
      const { clock, counters, history, count } = keeping();
      count();
      const addition = slowly(counters);
      await clock.advance(10_000);
      const asked = history.fleet(OWN, 3_600);
      await clock.advance(0);
      addition[outcome]();
      expect(await asked).toMatchObject({ totalHits: 1, processes: 1 });
      await clock.advance(10_000);
      expect(await history.fleet(OWN, 3_600)).toMatchObject({ totalHits: 1, processes: 1 });
    },
  );

  it("is complete: an addition waits for a running read, and is neither counted twice nor lost", async () => {
    const { clock, counters, history, count } = keeping();
    count();
    const read = counters.read.bind(counters);
    let go: () => void = () => {};
    const released = new Promise<void>((resolve) => (go = resolve));
    counters.read = async (names) => {
      await released;
      return read(names);
    };
    const asked = history.fleet(OWN, 3_600);
    await clock.advance(10_000);
    expect(counters.writes).toBe(0);
    go();
    expect(await asked).toMatchObject({ totalHits: 1, processes: 1 });
    await clock.advance(0);
    expect(counters.writes).toBe(1);
    expect(await history.fleet(OWN, 3_600)).toMatchObject({ totalHits: 1, processes: 1 });
  });

  it("is complete: what is counted during an addition is added the next time", async () => {
    const { clock, counters, history, count } = keeping();
    count();
    const addition = slowly(counters);
    await clock.advance(10_000);
    count();
    const asked = history.fleet(OWN, 3_600);
    addition.taken();
    expect(await asked).toMatchObject({ totalHits: 2, processes: 1 });
    await clock.advance(10_000);
    expect(counters.writes).toBe(2);
    const [row] = await counters.read([`minute:${Math.floor(clock.now() / 60_000)}`]);
    expect(row?.slice(0, 2)).toEqual([1, 2]);
  });
});

describe("two caches on one namespace", () => {
  it("are one process that writes once in ten seconds, and each sees what either counted", async () => {
    const { clock, counters, records, history, count } = keeping();
    const recorder = new Recorder(clock);
    const other = new History({ ...around(clock, records), recorder, counters, retentionMs: DAY_MS });
    const leave = other.attach();
    recorder.hits = 4;
    recorder.wake();
    count();
    expect(await other.fleet(OWN, 3_600)).toMatchObject({ totalHits: 5, processes: 1 });
    await clock.advance(10_000);
    expect(counters.writes).toBe(1);
    recorder.hits = 5;
    recorder.wake();
    leave();
    // What a departed cache has counted is added by the other.
    await clock.advance(10_000);
    expect(counters.writes).toBe(2);
    expect(clock.pending).toBe(0);
    expect(await history.fleet(OWN, 3_600)).toMatchObject({ totalHits: 6, processes: 1 });
  });
});
