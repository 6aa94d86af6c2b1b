// Several processes, one store, one database: after a write is invalidated, no process reads the value before it.
import { describe, expect, it } from "vitest";
import type { LoadContext } from "../../../src/core/options.ts";
import { ChaosBackend, type ChaosChances, cacheWithClock } from "../../../src/testing/index.ts";
import { seededRandom } from "../../../src/testing/manual-clock.ts";
import type { XCache } from "../../../src/xcache.ts";
import { type ReferenceOptions, ReferenceStore } from "../../support/reference-backend.ts";
import { RunningClock } from "../../support/running-clock.ts";

const KEYS = ["a", "b", "c"];
const PROCESSES = 3;
const STEPS = 120;
/** The longest time in which a process notices that its load was superseded by another one. */
const NOTICE_MS = 1_200;

interface Scenario {
  readonly store: ReferenceOptions;
  readonly chances: ChaosChances;
  /** How long a process may keep using its cached stamps. */
  readonly pushBoundMs: number;
}

/** A database write whose invalidation was acknowledged. */
interface Acknowledged {
  readonly version: number;
  readonly at: number;
  readonly by: number;
}

class World {
  readonly clock = new RunningClock();
  readonly caches: readonly XCache[];
  readonly violations: string[] = [];
  hits = 0;
  readonly #random: () => number;
  readonly #scenario: Scenario;
  readonly #database = new Map<string, number>(KEYS.map((key) => [key, 0]));
  readonly #acknowledged = new Map<string, Acknowledged[]>(KEYS.map((key) => [key, []]));

  constructor(seed: number, scenario: Scenario) {
    this.#random = seededRandom(seed);
    this.#scenario = scenario;
    const store = new ReferenceStore(this.clock, scenario.store);
    this.caches = Array.from({ length: PROCESSES }, (_, process) => {
      const backend = new ChaosBackend(store.client(), { clock: this.clock, seed: seed * 10 + process });
      backend.random(scenario.chances);
      return cacheWithClock({ backend, circuitBreaker: { failureThreshold: 1_000 } }, this.clock);
    });
  }

  async play(): Promise<void> {
    this.clock.start();
    const running: Promise<void>[] = [];
    for (let step = 0; step < STEPS; step++) {
      running.push(this.#act(this.#pick(PROCESSES), KEYS[this.#pick(KEYS.length)] as string));
      // Once a pause that is longer than any bound.
      await this.clock.passed(step === STEPS / 2 ? 1.5 * NOTICE_MS : this.#pick(12));
    }
    await Promise.all(running);
    this.clock.stop();
  }

  async #act(process: number, key: string): Promise<void> {
    const lot = this.#random();
    if (lot < 0.2) await this.#write(process, key);
    else if (lot < 0.5) await this.#get(process, key);
    else await this.#getOrSet(process, key);
  }

  async #write(process: number, key: string): Promise<void> {
    const cache = this.caches[process] as XCache;
    const version = (this.#database.get(key) ?? 0) + 1;
    this.#database.set(key, version);
    const ways = [
      () => cache.delete(key),
      () => cache.invalidateTags(`tag ${key}`),
      () => cache.invalidateTags(`late ${key}`),
      () => cache.invalidatePattern(`${key}*`),
      () => cache.clear(),
    ];
    const way = ways[this.#pick(ways.length)] as () => Promise<unknown>;
    // A write with an unknown outcome is repeated until it is known.
    while (
      !(await way().then(
        () => true,
        () => false,
      ))
    );
    this.#acknowledged.get(key)?.push({ version, at: this.clock.now(), by: process });
  }

  async #get(process: number, key: string): Promise<void> {
    const least = this.#leastVersion(process, key, this.#scenario.pushBoundMs);
    const version = await (this.caches[process] as XCache).get<number>(key).catch(() => undefined);
    if (version === undefined) return;
    this.hits++;
    this.#judge("get", process, key, version, least);
  }

  async #getOrSet(process: number, key: string): Promise<void> {
    const least = this.#leastVersion(process, key, NOTICE_MS);
    const load = async (context: LoadContext<number>): Promise<number> => {
      const version = this.#database.get(key) ?? 0;
      await this.clock.passed(this.#pick(40));
      context.setTags([`late ${key}`]);
      return version;
    };
    const version = await (this.caches[process] as XCache).getOrSet(key, load, {
      ttl: 3600,
      tags: [`tag ${key}`],
    });
    this.#judge("getOrSet", process, key, version, least);
  }

  /** The version that a read starting now must at least see: own writes immediately, others' after the bound. */
  #leastVersion(process: number, key: string, boundMs: number): number {
    const now = this.clock.now();
    const known = (this.#acknowledged.get(key) ?? []).filter(
      ({ at, by }) => by === process || at + boundMs < now,
    );
    return Math.max(0, ...known.map(({ version }) => version));
  }

  #judge(what: string, process: number, key: string, version: number, least: number): void {
    if (version >= least) return;
    this.violations.push(
      `${what} of ${key} in process ${process} gave version ${version}, at least ${least} was due`,
    );
  }

  #pick(count: number): number {
    return Math.floor(this.#random() * count);
  }
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "a store without push": { store: {}, chances: { delayMs: 6 }, pushBoundMs: 0 },
  "a store whose pushes overtake its replies": {
    store: { push: "at once" },
    chances: { delayMs: 20 },
    pushBoundMs: 0,
  },
  "a store whose pushes come late": { store: { push: 15 }, chances: { delayMs: 6 }, pushBoundMs: 30 },
  "a store that drops calls and loses replies": {
    store: {},
    chances: { delayMs: 6, drop: 0.05, lose: 0.05 },
    pushBoundMs: 0,
  },
  "a store that pushes, drops calls and loses replies": {
    store: { push: 5 },
    chances: { delayMs: 6, drop: 0.05, lose: 0.05 },
    pushBoundMs: 20,
  },
};

const SEEDS = Array.from({ length: 8 }, (_, at) => at + 1);

describe("no read returns a value from before an invalidated write", () => {
  it.each(Object.entries(scenarios))("on %s", async (_name, scenario) => {
    let hits = 0;
    for (const seed of SEEDS) {
      const world = new World(seed, scenario);
      await world.play();
      expect(world.violations, `seed ${seed}`).toEqual([]);
      hits += world.hits;
    }
    // A cache that stores nothing would pass as well.
    expect(hits).toBeGreaterThan(3 * SEEDS.length);
  });
});
