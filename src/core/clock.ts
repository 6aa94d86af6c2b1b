// The only source of time, timers and randomness; tests inject their own, so no test sleeps.
import { outsideCallers } from "./async-context.ts";
import { nodeCrypto } from "./lazy-builtin.ts";

/** A pending timer. Cancelling one that has fired does nothing. */
export interface Timer {
  cancel(): void;
  /** Whether it keeps the process alive until it fires. Default: it does not. */
  hold?(holds: boolean): void;
}

export interface Clock {
  /** Milliseconds since the epoch; never runs backwards within a process. */
  now(): number;
  /**
   * Like `now()`, but may lag behind by up to `COARSE_LAG_MS`; by more only while the event loop is blocked, until `now()`
   * is called or for 31 readings. A hit path compares with it first and calls `now()` only when an expiry is near.
   */
  coarse(): number;
  /** How many consecutive hits may share one reading of `coarse()`. Default: 1. */
  readonly hitsPerReading?: number;
  /** Milliseconds since the epoch by this machine's wall clock, which may jump. Default: `now()`. */
  wall?(): number;
  /** The coarse form of `wall()`. */
  coarseWall?(): number;
  /** Runs `run` once after `delayMs` (any length), outside of any caller's context; never keeps the process alive. */
  after(delayMs: number, run: () => void): Timer;
  /** 64 random bits as a string of 8 characters, each one byte. */
  token(): string;
  /** A number in [0, 1). */
  random(): number;
}

/** How far `coarse()` may lag behind `now()`. */
export const COARSE_LAG_MS = 1_000;

/** This close to an expiry the coarse clock is not precise enough: it lags, by 5 s more while the event loop is blocked. */
export const NEAR_EXPIRY_MS = 5_000 + COARSE_LAG_MS;

/** The longest delay of a Node timer. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

function after(delayMs: number, run: () => void): Timer {
  let handle: NodeJS.Timeout;
  const arm = (left: number): void => {
    const step = Math.min(left, LONGEST_TIMEOUT_MS);
    handle = setTimeout(() => (left > step ? arm(left - step) : run()), Math.max(0, step));
    handle.unref();
  };
  if (delayMs === Number.POSITIVE_INFINITY) return { cancel() {} };
  outsideCallers(() => arm(delayMs));
  return {
    cancel: () => clearTimeout(handle),
    hold: (holds) => {
      if (holds) handle.ref();
      else handle.unref();
    },
  };
}

// As exact as `performance`, which takes milliseconds to load. Bound once: a lookup on each reading would double its cost.
const { hrtime } = process;

function sinceBoot(): number {
  const [seconds, nanoseconds] = hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

const boot = Date.now() - sinceBoot();

// Monotonic: a step of the wall clock neither revives nor expires entries.
const exactNow = (): number => boot + sinceBoot();

/** Every exact reading is the newest coarse one as well. */
const now = (): number => {
  const [seconds, nanoseconds] = hrtime();
  coarseNow.latest = boot + (seconds * 1e3 + nanoseconds / 1e6);
  return coarseNow.latest;
};

/** Every 32nd reading comes from the clock itself, because the interval cannot fire while promises keep the loop busy. */
const HITS_PER_READING = 32;

/** Caches a reading and refreshes it twice a second while it is in use; without readers the interval stops. */
class CoarseReading {
  readonly #take: () => number;
  latest = 0;
  #readings = 0;
  #asked = false;
  #resting = true;

  constructor(take: () => number) {
    this.#take = take;
  }

  /** Part of the clock as it is, so that a reading is a single call. */
  readonly read = (): number => {
    if (this.#resting) this.#wake();
    this.#asked = true;
    if (++this.#readings >= HITS_PER_READING) {
      this.#readings = 0;
      this.latest = this.#take();
    }
    return this.latest;
  };

  #wake(): void {
    this.#resting = false;
    this.latest = this.#take();
    outsideCallers(() => {
      const interval = setInterval(() => {
        if (this.#asked) {
          this.#asked = false;
          this.latest = this.#take();
        } else {
          this.#resting = true;
          clearInterval(interval);
        }
      }, COARSE_LAG_MS / 2);
      interval.unref();
    });
  }
}

const wall = (): number => Date.now();

const coarseNow = new CoarseReading(exactNow);
const coarseWall = new CoarseReading(wall);

const TOKEN_LENGTH = 8;
const POOL_TOKENS = 512;
const tokenBytes = Buffer.alloc(TOKEN_LENGTH * POOL_TOKENS);
/** All tokens of the pool in one string: cutting one off costs much less than turning its bytes into a string. */
let tokenPool = "";
let tokenAt = 0;

function token(): string {
  if (tokenAt === tokenPool.length) {
    tokenPool = nodeCrypto().randomFillSync(tokenBytes).toString("latin1");
    tokenAt = 0;
  }
  tokenAt += TOKEN_LENGTH;
  return tokenPool.slice(tokenAt - TOKEN_LENGTH, tokenAt);
}

export const systemClock: Clock = {
  now,
  coarse: coarseNow.read,
  hitsPerReading: HITS_PER_READING,
  wall,
  coarseWall: coarseWall.read,
  after,
  token,
  random: Math.random,
};

/** For times that are compared with those that other libraries have read from `performance`. */
export const performanceClock: Clock = {
  ...systemClock,
  now: () => performance.timeOrigin + performance.now(),
};

/** Resolves after `ms`, or as soon as one of the signals aborts. */
export function pause(clock: Clock, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, done);
    function done(): void {
      timer.cancel();
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    }
    for (const signal of signals) signal.addEventListener("abort", done, { once: true });
    if (signals.some(({ aborted }) => aborted)) done();
  });
}
