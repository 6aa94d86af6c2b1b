// A server's time derived from whole seconds: bounds that always contain the truth, and are soon close to it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ServerClock } from "../../../src/backends/memcached/server-clock.ts";

/** Queries a server whose time is ours plus `offset`, with these latencies. */
function ask(time: ServerClock, now: number, offset: number, there: number, back: number): number {
  time.take(Math.floor((now + there + offset) / 1_000), now, now + there + back);
  return now + there + back;
}

/** Whether the start of the second has been found. */
const isClose = (time: ServerClock, now: number): boolean => time.high(now) - time.low(now) <= 52;

describe("the bounds of a server's time", () => {
  it("are a second apart after one answer, and close after a few well-timed ones", () => {
    const time = new ServerClock();
    let now = ask(time, 1_000_000, 123_456.7, 0.2, 0.3);
    expect(isClose(time, now)).toBe(false);
    expect(time.high(now) - time.low(now)).toBeLessThan(1_010);
    const began = now;
    for (let asked = 0; asked < 6; asked++) now = ask(time, now + time.nextIn(now), 123_456.7, 0.2, 0.3);
    expect(isClose(time, now)).toBe(true);
    expect(now - began).toBeLessThan(6_500);
    expect(time.high(now) - time.low(now)).toBeLessThan(40);
  });

  it("always contain the truth, whatever the latency and even though clocks drift", () => {
    const way = fc.double({ min: 0, max: 30, noNaN: true });
    fc.assert(
      fc.property(
        fc.double({ min: -1e6, max: 1e6, noNaN: true }),
        fc.double({ min: -1.5e-3, max: 4e-4, noNaN: true }),
        fc.array(fc.record({ there: way, back: way }), { minLength: 1, maxLength: 20 }),
        (offset, drift, trips) => {
          const time = new ServerClock();
          const start = 2e9;
          let now = start;
          const truth = (): number => offset + (now - start) * drift;
          for (const { there, back } of trips) {
            now = ask(time, now, truth(), there, back);
            expect(time.low(now)).toBeLessThanOrEqual(truth() + 0.1);
            expect(time.high(now)).toBeGreaterThanOrEqual(truth() - 0.1);
            now += time.nextIn(now);
          }
        },
      ),
    );
  });

  it.each([1_000, -1_000, 60_000, -400, 400])(
    "start over soon after the server's clock has jumped by %i ms",
    (leapMs) => {
      const time = new ServerClock();
      let now = ask(time, 1_000_000, 0, 0, 0);
      for (let asked = 0; asked < 8; asked++) now = ask(time, now + time.nextIn(now), 0, 0, 0);
      expect(isClose(time, now)).toBe(true);
      const changed = now;
      while (now - changed < 7_500 && isClose(time, now))
        now = ask(time, now + time.nextIn(now), leapMs, 0, 0);
      expect(isClose(time, now)).toBe(false);
      for (let asked = 0; asked < 8; asked++) now = ask(time, now + time.nextIn(now), leapMs, 0, 0);
      expect(isClose(time, now)).toBe(true);
      expect(time.low(now)).toBeLessThanOrEqual(leapMs);
      expect(time.high(now)).toBeGreaterThanOrEqual(leapMs);
    },
  );

  it("are close again soon after a pause of any length, and contain the truth", () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 7_200_000, noNaN: true }),
        fc.double({ min: 0, max: 1_000, noNaN: true }),
        (pauseMs, phase) => {
          const time = new ServerClock();
          let now = 50_000 + phase;
          const askOnce = (): void => {
            time.take(reported(now), now - 0.2, now + 0.1);
            now += time.nextIn(now);
          };
          for (let asked = 0; asked < 12; asked++) askOnce();
          expect(isClose(time, now)).toBe(true);
          now += pauseMs;
          const resumed = now;
          while (now - resumed < 15_000) askOnce();
          expect(isClose(time, now)).toBe(true);
          // What the server reports between two seconds.
          const began = Math.floor(now / 1_001) * 1_001;
          const truth = reported(began) * 1_000 - began;
          expect(time.low(now)).toBeLessThanOrEqual(truth + 1);
          expect(time.high(now)).toBeGreaterThanOrEqual(truth - 1);
        },
      ),
    );
  });

  it("stay close with a query about every two seconds", () => {
    const time = new ServerClock();
    let now = ask(time, 1_000_000, 77, 0.1, 0.1);
    for (let asked = 0; asked < 8; asked++) now = ask(time, now + time.nextIn(now), 77, 0.1, 0.1);
    const until = now + 600_000;
    let questions = 0;
    for (; now < until; questions++) {
      now += time.nextIn(now);
      expect(isClose(time, now)).toBe(true);
      now = ask(time, now, 77, 0.1, 0.1);
    }
    expect(questions).toBeGreaterThan(200);
    expect(questions).toBeLessThan(400);
  });

  it.each<[string, (now: number) => number]>([
    ["in use all the time", () => 0],
    ["of a busy machine", (now) => (now * 7_919) % 30],
    ["that pause for half a minute at times", (now) => (now % 60_000 < 30_000 ? 0 : 60_000 - (now % 60_000))],
  ])(
    "of processes %s never let an entry outlive its ttl where the server's timer is late and skips seconds",
    (_, lateMs) => {
      const longest = Math.max(...[0, 211, 423, 649].map((phase) => longestLife(phase, lateMs)));
      expect(longest).toBeGreaterThan(TTL_MS - 150);
      expect(longest).toBeLessThanOrEqual(TTL_MS);
    },
  );
});

const TTL_MS = 1_500;

/** What a server reports whose timer fires every 1,001 ms and then takes the second of its monotonic clock. */
const reported = (now: number): number => Math.floor((Math.floor(now / 1_001) * 1_001) / 1_000);

/** How long after storing an entry is still served by any of a few processes, with two skips a quarter of an hour apart. */
function longestLife(phase: number, lateMs: (now: number) => number): number {
  const processes = Array.from({ length: 4 }, (_, at) => ({
    time: new ServerClock(),
    next: 930_000 + phase + at * 317,
    // One of them is always in use and on time.
    lateMs: at === 0 ? () => 0 : lateMs,
  }));
  let written: { expires: number; at: number }[] = [];
  let longest = 0;
  for (let now = 930_000; now < 2_020_000; now++) {
    // Nothing happens between the seconds that are skipped.
    if (now === 1_030_000) now = 1_950_000;
    for (const process of processes) {
      if (process.next > now) continue;
      process.time.take(reported(now), now - 0.2, now + 0.1);
      process.next = now + process.time.nextIn(now);
      process.next += process.lateMs(process.next);
    }
    if (now % 20 !== 0 || processes.some(({ time }) => time.askedAt === 0)) continue;
    const earliest = Math.min(...processes.map(({ time }) => now + time.high(now)));
    written = written.filter(({ expires }) => earliest < expires);
    for (const { at } of written) longest = Math.max(longest, now - at);
    for (const { time } of processes) written.push({ expires: now + time.low(now) + TTL_MS, at: now });
  }
  return longest;
}
