// ManualClock: a clock that tests advance explicitly, and the seeded random numbers it provides; and a cache that reads time
// from a given clock.
import { sharedCode } from "../cache/deferred-store.ts";
import { openScope } from "../cache/lifecycle.ts";
import * as openShared from "../cache/open-shared.ts";
import type { CacheConfig } from "../config/types.ts";
import { requireClock } from "../core/arguments.ts";
import type { Clock, Timer } from "../core/clock.ts";
import { XCache } from "../xcache.ts";
import { requireSpan } from "./test-arguments.ts";

interface PendingTimer {
  readonly due: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * Stands still until `advance` or `jump` is called. Timers run in order of their due time. Random numbers and tokens derive
 * from `seed`, so a run can be repeated. `start` is in milliseconds since the epoch.
 *
 * @example
 * ```ts
 * const clock = new ManualClock();
 * const cache = cacheWithClock({ kvUrl: "memory://" }, clock);
 * await cache.set("key", 1, { ttl: 60 });
 * await clock.advance(60_000); // expired, without waiting
 * ```
 */
export class ManualClock implements Clock {
  #now: number;
  #order = 0;
  readonly random: () => number;
  readonly #timers = new Set<PendingTimer>();

  constructor(start = Date.UTC(2026, 0, 1), seed = 1) {
    this.#now = requireSpan("the start", start);
    this.random = seededRandom(seed);
  }

  readonly now = (): number => this.#now;
  readonly coarse = (): number => this.#now;

  readonly after = (delayMs: number, run: () => void): Timer => {
    const pending: PendingTimer = { due: this.#now + Math.max(0, delayMs), order: this.#order++, run };
    this.#timers.add(pending);
    return { cancel: () => void this.#timers.delete(pending) };
  };

  readonly token = (): string => {
    let token = "";
    for (let at = 0; at < 8; at++) token += String.fromCharCode(Math.floor(this.random() * 256));
    return token;
  };

  /** The number of timers that have not run yet. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances time by `ms`, runs each timer at its due time, and lets promises settle in between. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + requireSpan("the time to advance", ms);
    await settle();
    for (;;) {
      const next = this.#next(target);
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.due);
      this.#timers.delete(next);
      next.run();
      await settle();
    }
    this.#now = target;
    await settle();
  }

  /** Advances time in one step, as after a suspended process: timers that became due run late, once each. */
  async jump(ms: number): Promise<void> {
    requireSpan("the time to advance", ms);
    await settle();
    this.#now += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.due - b.due || a.order - b.order)) {
      if (timer.due <= this.#now && this.#timers.delete(timer)) timer.run();
    }
    await settle();
  }

  #next(target: number): PendingTimer | undefined {
    let next: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.due > target) continue;
      if (
        next === undefined ||
        timer.due < next.due ||
        (timer.due === next.due && timer.order < next.order)
      ) {
        next = timer;
      }
    }
    return next;
  }
}

/** Resolves on the next turn of the event loop, after pending promise callbacks have run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Numbers in [0, 1) from mulberry32: the same seed gives the same sequence. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A cache that reads time from `clock`. It loads no code later: that would take real time, in which `clock` may move on. */
export function cacheWithClock(config: CacheConfig, clock: Clock): XCache {
  requireClock(clock);
  sharedCode.loaded ??= openShared;
  return new XCache(openScope(config, clock) as CacheConfig);
}
