// Runs the simulation in processes of their own, with V8 set up for it, and spreads schedules over several of them.
import { fork } from "node:child_process";

/**
 * @typedef {typeof import("../../test/simulation/index.ts")} Bundle
 * @typedef {import("../../test/simulation/index.ts").Simulation} Simulation
 * @typedef {import("../../test/simulation/index.ts").SimulationOptions} SimulationOptions
 */

/** One per core of the smallest machine that runs the tests. */
export const RUNNERS = 2;

const CHILD = new URL("./child.mjs", import.meta.url);

/**
 * Each runner has a core for itself, so helper threads only take from the others: they share the work of the garbage collector
 * at the price of more of it. Most functions are called from many places, and compiling what could be inlined into each of
 * them took a quarter of the processor time.
 */
const V8_OPTIONS = [
  "--no-warnings",
  "--single-threaded-gc",
  "--min-semi-space-size=32",
  "--max-semi-space-size=32",
  "--max-inlined-bytecode-size-cumulative=200",
];

/**
 * One process for any number of calls, one after another: the first thousand schedules of a process take twice as long as
 * later ones, until the code is compiled.
 */
export class SimulationRunner {
  #child;
  /** @type {Map<number, { resolve(result: any): void, reject(error: unknown): void }>} */
  #waiting = new Map();
  #ids = 0;

  /** @param {string} url Of a bundle. @param {readonly string[]} [v8Options] Besides the usual ones. */
  constructor(url, v8Options = []) {
    this.#child = fork(CHILD, [url], {
      execArgv: [...V8_OPTIONS, ...v8Options],
      serialization: "advanced",
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child.on("message", (/** @type {any} */ { id, result, error }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(error);
    });
    this.#child.on("error", (error) => this.#fail(error));
    this.#child.on("exit", (code) => this.#fail(new Error(`the simulation ended with code ${code}`)));
  }

  /**
   * Calls a function of the bundle.
   * @template {Exclude<keyof Bundle, "DRILLS" | "MUTATIONS">} Name
   * @param {Name} name
   * @param {Parameters<Bundle[Name]>} args
   * @returns {Promise<Awaited<ReturnType<Bundle[Name]>>>}
   */
  call(name, ...args) {
    return new Promise((resolve, reject) => {
      const id = ++this.#ids;
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, name, args });
    });
  }

  end() {
    this.#child.kill();
  }

  /** @param {Error} error */
  #fail(error) {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/**
 * Calls `run` for each item: each runner takes the next one when it is free.
 * @template T, R
 * @param {readonly R[]} runners
 * @param {Iterable<T>} items
 * @param {(runner: R, item: T) => Promise<void>} run
 */
export async function spread(runners, items, run) {
  const left = items[Symbol.iterator]();
  const work = async (/** @type {R} */ runner) => {
    for (let next = left.next(); !next.done; next = left.next()) await run(runner, next.value);
  };
  await Promise.all(runners.map(work));
}

const PART = 250;

/**
 * As `simulate` of the bundle, in all runners.
 * @param {readonly SimulationRunner[]} runners
 * @param {SimulationOptions} options
 * @param {boolean} [stops] Only until the first violation, which is that of the lowest seed.
 * @returns {Promise<Simulation>}
 */
export async function simulateIn(runners, options, stops = false) {
  /** @type {Simulation[]} */
  const parts = [];
  const isFailing = () => parts.some((part) => part?.first !== undefined);
  function* starts() {
    for (let from = 0; from < options.schedules && !(stops && isFailing()); from += PART) yield from;
  }
  await spread(runners, starts(), async (runner, from) => {
    const schedules = Math.min(PART, options.schedules - from);
    parts[from / PART] = await runner.call(
      "simulate",
      { ...options, seed: options.seed + from, schedules },
      stops,
    );
  });
  return merged(
    stops ? parts.slice(0, parts.findIndex(({ first }) => first !== undefined) + 1 || parts.length) : parts,
  );
}

const MOST_SEEDS = 5;

/**
 * @param {readonly Simulation[]} parts In the order of their seeds.
 * @returns {Simulation}
 */
function merged(parts) {
  /** @type {Record<string, { count: number, seeds: number[] }>} */
  const failures = {};
  for (const part of parts) {
    for (const [check, { count, seeds }] of Object.entries(part.failures)) {
      const failure = failures[check] ?? { count: 0, seeds: [] };
      failures[check] = {
        count: failure.count + count,
        seeds: [...failure.seeds, ...seeds].slice(0, MOST_SEEDS),
      };
    }
  }
  const schedules = parts.reduce((sum, part) => sum + part.schedules, 0);
  return { schedules, failures, first: parts.find(({ first }) => first !== undefined)?.first };
}
