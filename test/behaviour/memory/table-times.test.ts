import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Box } from "../../../src/backends/memory/layout/box.ts";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { Sweeper } from "../../../src/backends/memory/sweeper.ts";
import { type EntryTags, type Held, Table } from "../../../src/backends/memory/table.ts";
import { LaggingClock } from "../../backends/memory/lagging-clock.ts";
import { MortalTagSet } from "../../backends/memory/tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** Longer than any entry of these tests lives, except those that live for years. */
const ALL_LAPSED_MS = 50 * HOUR_MS;

/** The time limit for shrinking a failure; it is reported in any case. */
const PATIENCE = { interruptAfterTimeLimit: 12_000 };

interface Setting {
  readonly lagMs: number;
  /** Whether the timer runs; otherwise only insertions and the steps themselves turn the wheel. */
  readonly timer: boolean;
  /** Whether there are two more entries that expire in years. */
  readonly company: boolean;
  readonly maxEntries: number;
  readonly maxBytes: number;
  /** Whether `staleUntil` is compared too. */
  readonly exact: boolean;
}

const ROOMY: Setting = {
  lagMs: 0,
  timer: false,
  company: false,
  maxEntries: 1_000,
  maxBytes: NEVER,
  exact: true,
};

type Step =
  | {
      readonly do: "put";
      readonly page: number;
      readonly key: number;
      readonly ttlMs: number;
      readonly staleMs: number;
      readonly sealed: boolean;
      readonly bytes: number;
    }
  | { readonly do: "remove"; readonly page: number; readonly key: number }
  | { readonly do: "read"; readonly page: number; readonly key: number; readonly times: number }
  | { readonly do: "clear"; readonly page: number }
  | { readonly do: "wait"; readonly ms: number; readonly late: boolean }
  /** Waits until an entry is about to expire, expires, or has just expired. */
  | { readonly do: "wait for"; readonly entry: number; readonly offsetMs: number; readonly late: boolean }
  | { readonly do: "turn"; readonly most: number }
  | { readonly do: "kill" | "reclaim" | "peek" | "find" };

const KEYS = 8;
const late = fc.boolean();
const between = (min: number, max: number): fc.Arbitrary<number> => fc.integer({ min, max });
const briefMs = fc.oneof(between(0, 9_000), between(9_000, 120_000));
/** Around the times that matter: the second, a near expiry, a turn of the wheel, and far beyond it. */
const anyMs = fc.oneof(
  briefMs,
  briefMs,
  between(4_080_000, 4_110_000),
  between(2 * HOUR_MS, 30 * HOUR_MS),
  fc.constant(NEVER),
);

interface Puts {
  readonly keys: number;
  readonly ttlMs: fc.Arbitrary<number>;
  readonly staleMs: fc.Arbitrary<number>;
  readonly sealed: fc.Arbitrary<boolean>;
}

function stepsWith({ keys, ...puts }: Puts): fc.Arbitrary<Step[]> {
  const key = fc.nat(keys - 1);
  const page = fc.nat(keys > 2 ? 1 : 0);
  return fc.array(
    fc.oneof(
      {
        weight: 14,
        arbitrary: fc.record({ do: fc.constant("put" as const), page, key, ...puts, bytes: fc.nat(150) }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), page, key }) },
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant("read" as const),
          page,
          key,
          times: fc.constantFrom(1, 16),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant("wait" as const),
          ms: fc.oneof(between(0, 3_000), between(0, 60_000), puts.ttlMs.filter(Number.isFinite)),
          late,
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({
          do: fc.constant("wait for" as const),
          entry: fc.nat(100),
          offsetMs: fc.constantFrom(-7_000, -1_000, -1, 0, 1, 1_000),
          late,
        }),
      },
      { weight: 4, arbitrary: fc.record({ do: fc.constant("turn" as const), most: between(1, 8) }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const), page }) },
      {
        weight: 5,
        arbitrary: fc.record({ do: fc.constantFrom("kill" as const, "reclaim", "peek", "find", "find") }),
      },
    ),
    { maxLength: 80, size: "max" },
  );
}

/** Entries that only expire take the fastest path, all the more if they are few and none outlives the others by far. */
const briefSteps = stepsWith({
  keys: 2,
  ttlMs: briefMs,
  staleMs: fc.constant(0),
  sealed: fc.constant(false),
});
const plainSteps = stepsWith({
  keys: KEYS,
  ttlMs: anyMs,
  staleMs: fc.constant(0),
  sealed: fc.constant(false),
});
const richSteps = stepsWith({
  keys: KEYS,
  ttlMs: anyMs,
  staleMs: fc.oneof(fc.constant(0), between(1, 20_000), fc.constant(NEVER)),
  sealed: fc.boolean(),
});

interface Modelled {
  readonly page: number;
  readonly key: string;
  readonly value: number;
  readonly tagSet: MortalTagSet | undefined;
  readonly expires: number;
  readonly staleUntil: number;
  readonly bytes: number;
}

/** A table and a list of what was put into it. */
class Comparison {
  readonly clock: LaggingClock;
  readonly table: Table<EntryTags>;
  readonly pages: readonly Page[];
  readonly company: Page;
  readonly #model = new Map<string, Modelled>();
  readonly #setting: Setting;
  readonly #evicted: [Page, string][] = [];
  readonly #sweeper: Sweeper;
  #tagSet = new MortalTagSet();
  #value = 0;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.clock = new LaggingClock(setting.lagMs);
    this.table = new Table<EntryTags>({
      maxEntries: setting.maxEntries,
      maxBytes: setting.maxBytes,
      clock: this.clock,
      onEvict: (from, name) => this.#evicted.push([from, name]),
    });
    this.pages = [this.table.openPage(), this.table.openPage()];
    this.company = this.table.openPage();
    this.#sweeper = new Sweeper(this.table, this.clock);
    if (setting.timer) this.#sweeper.start();
  }

  async run(todo: readonly Step[]): Promise<void> {
    for (const step of todo) {
      if (this.#setting.company) this.#keepCompany();
      await this.#do(step);
      this.#settleEvicted();
      this.#expectBounds();
    }
    this.#peekAll();
    this.#findAll();
    await this.#finish();
  }

  async #do(step: Step): Promise<void> {
    if (step.do === "put") this.#put(step);
    else if (step.do === "remove") {
      const at = this.pages[step.page] as Page;
      const name = `k${step.key}`;
      const there = at.held(name) !== undefined;
      expect(this.table.remove(at, name)).toBe(there);
      this.#model.delete(`${step.page} ${name}`);
    } else if (step.do === "read") {
      for (let time = 0; time < step.times; time++) this.#peek(step.page, `k${step.key}`);
    } else if (step.do === "clear") {
      this.table.clear(this.pages[step.page] as Page);
      for (const [name, entry] of this.#model) if (entry.page === step.page) this.#model.delete(name);
      expect(this.pages[step.page]?.size).toBe(0);
    } else if (step.do === "wait") await this.#wait(step.ms, step.late);
    else if (step.do === "wait for") {
      const ending = [...this.#model.values()].filter(({ expires }) => Number.isFinite(expires));
      const entry = ending[step.entry % Math.max(1, ending.length)];
      if (entry !== undefined) await this.#wait(entry.expires + step.offsetMs - this.clock.now(), step.late);
    } else if (step.do === "turn") this.table.turn(step.most);
    else if (step.do === "kill") {
      this.#tagSet.live = false;
      this.#tagSet = new MortalTagSet();
    } else if (step.do === "peek") this.#peekAll();
    else if (step.do === "find") this.#findAll();
    else this.#reclaim();
  }

  #put({ page: number, key: name, ttlMs: ttl, staleMs, sealed, bytes }: Step & { do: "put" }): void {
    const expires = this.clock.now() + ttl;
    const tagSet = sealed ? this.#tagSet : undefined;
    const entry: Modelled = {
      page: number,
      key: `k${name}`,
      value: ++this.#value,
      tagSet,
      expires,
      staleUntil: expires + staleMs,
      bytes,
    };
    const at = this.pages[number] as Page;
    const fits = bytes <= this.#setting.maxBytes;
    expect(this.table.put(at, entry.key, entry.value, tagSet, expires, staleMs, bytes)).toBe(fits);
    if (fits) this.#model.set(`${number} k${name}`, entry);
    else this.#model.delete(`${number} k${name}`);
    this.#settleEvicted();
    this.#peek(number, entry.key);
  }

  async #wait(ms: number, isLate: boolean): Promise<void> {
    if (ms < 0) return;
    // A timer that runs every second would take too long to get through hours.
    if (isLate || (this.#setting.timer && ms > 300_000)) await this.clock.jump(ms);
    else await this.clock.advance(ms);
  }

  #isSpent({ tagSet, staleUntil }: Modelled): boolean {
    return tagSet?.live === false || staleUntil <= this.clock.now();
  }

  #peek(number: number, name: string): void {
    const entry = this.#model.get(`${number} ${name}`);
    const isFresh = entry !== undefined && entry.tagSet?.live !== false && this.clock.now() < entry.expires;
    expect(this.pages[number]?.peek(name)).toBe(isFresh ? entry.value : undefined);
  }

  #peekAll(): void {
    for (const number of [0, 1]) for (let at = 0; at < KEYS; at++) this.#peek(number, `k${at}`);
  }

  #findAll(): void {
    for (const number of [0, 1]) {
      for (let at = 0; at < KEYS; at++) {
        const entry = this.#model.get(`${number} k${at}`);
        const found = this.table.find(this.pages[number] as Page, `k${at}`);
        if (entry === undefined || entry.tagSet?.live === false) expect(found).toBeUndefined();
        else if (found !== undefined) this.#expectEqual(found, entry);
        else expect(this.#isSpent(entry)).toBe(true);
      }
    }
  }

  #expectEqual(found: Held<EntryTags>, { value, tagSet, expires, staleUntil }: Modelled): void {
    expect(found.staleUntil).toBeGreaterThanOrEqual(staleUntil);
    const comparable = this.#setting.exact ? found : { ...found, staleUntil };
    expect(comparable).toEqual({ value, tagSet, expires, staleUntil });
  }

  /** Only usable entries are reported. */
  #settleEvicted(): void {
    for (const [from, name] of this.#evicted.splice(0)) {
      if (from === this.company) continue;
      const entry = this.#model.get(`${this.pages.indexOf(from)} ${name}`);
      expect(from.held(name)).toBeUndefined();
      expect(entry?.tagSet?.live).not.toBe(false);
      if (this.#setting.exact) expect(entry?.staleUntil).toBeGreaterThan(this.clock.coarse());
      this.#model.delete(`${this.pages.indexOf(from)} ${name}`);
    }
  }

  #expectBounds(): void {
    const { size, bytes, horizon, maxEntries, maxBytes } = this.table;
    for (const entry of this.#model.values()) {
      const held = this.pages[entry.page]?.held(entry.key);
      if (held === undefined || held instanceof Box) continue;
      expect(horizon === NEVER ? entry.expires : entry.expires - this.#setting.lagMs).toBeGreaterThanOrEqual(
        horizon,
      );
    }
    expect(size >= 0 && size <= maxEntries && bytes >= 0 && bytes <= maxBytes).toBe(true);
    expect(size).toBeGreaterThanOrEqual(this.pages.reduce((sum, at) => sum + at.size, this.company.size));
  }

  #keepCompany(): void {
    for (const name of ["one", "two"]) {
      if (this.company.held(name) !== undefined) continue;
      this.table.put(this.company, name, name, undefined, this.clock.now() + 10 * YEAR_MS);
    }
    this.#settleEvicted();
  }

  #turnAll(): void {
    for (let slices = 0; !this.table.turn(5); slices++) expect(slices).toBeLessThan(10_000);
  }

  /** Only usable entries are left. */
  #reclaim(): void {
    this.#turnAll();
    this.table.sweep(this.table.maxEntries);
    if (!this.#setting.exact) return;
    this.#forgetSpent();
    this.#expectSums();
  }

  #forgetSpent(): void {
    for (const [name, entry] of this.#model) if (this.#isSpent(entry)) this.#model.delete(name);
  }

  #expectSums(): void {
    const entries = [...this.#model.values()];
    const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    expect(this.table.size).toBe(entries.length + this.company.size);
    expect(this.table.bytes).toBe(this.#setting.maxBytes === NEVER ? 0 : bytes);
    for (const at of [0, 1]) {
      const names = entries.filter((entry) => entry.page === at).map((entry) => entry.key);
      expect([...(this.pages[at] as Page).keys()].toSorted()).toEqual(names.toSorted());
    }
  }

  /** The wheel alone reclaims everything that lapses; a sweep the dead; and an empty table is back in its initial state. */
  async #finish(): Promise<void> {
    await this.clock.jump(ALL_LAPSED_MS);
    this.#turnAll();
    const unlapsed = new Set<string>();
    for (const [name, entry] of this.#model) if (entry.staleUntil > this.clock.now()) unlapsed.add(name);
    for (const [at, opened] of this.pages.entries()) {
      for (const name of opened.keys()) expect(unlapsed).toContain(`${at} ${name}`);
    }
    this.#reclaim();
    this.#forgetSpent();
    this.#expectSums();
    for (const at of [...this.pages, this.company]) this.table.clear(at);
    this.#turnAll();
    const { size, bytes, horizon, needsTending } = this.table;
    expect({ size, bytes, horizon, needsTending }).toEqual({
      size: 0,
      bytes: 0,
      horizon: NEVER,
      needsTending: false,
    });
    this.#sweeper.stop();
    expect(this.clock.pending).toBe(0);
  }
}

describe("a table agrees with a list of what was put, at every time", () => {
  // The contract allows a second, and a blocked event loop adds to it.
  const lagMs = fc.constantFrom(0, 1, 500, 1_000, 6_000);

  test.each([{ timer: true }, { timer: false }])(
    "if entries only expire, after minutes at most, timer $timer",
    async ({ timer }) => {
      await fc.assert(
        fc.asyncProperty(lagMs, briefSteps, (lag, todo) =>
          new Comparison({ ...ROOMY, lagMs: lag, timer }).run(todo),
        ),
        { numRuns: 40, ...PATIENCE },
      );
    },
  );

  test.each([{ timer: true }, { timer: false }])(
    "if entries only expire, timer $timer",
    async ({ timer }) => {
      await fc.assert(
        fc.asyncProperty(lagMs, plainSteps, (lag, todo) =>
          new Comparison({ ...ROOMY, lagMs: lag, timer }).run(todo),
        ),
        { numRuns: 40, ...PATIENCE },
      );
    },
  );

  test.each([{ timer: true }, { timer: false }])(
    "if some are sealed or go stale, timer $timer",
    async ({ timer }) => {
      await fc.assert(
        fc.asyncProperty(lagMs, richSteps, (lag, todo) =>
          new Comparison({ ...ROOMY, lagMs: lag, timer }).run(todo),
        ),
        { numRuns: 40, ...PATIENCE },
      );
    },
  );

  test("if there are bytes to count", async () => {
    await fc.assert(
      fc.asyncProperty(lagMs, fc.boolean(), richSteps, (lag, timer, todo) =>
        new Comparison({ ...ROOMY, lagMs: lag, timer, maxBytes: 1e6, exact: true }).run(todo),
      ),
      { numRuns: 40, ...PATIENCE },
    );
  });

  test("if there is little room", async () => {
    const maxEntries = fc.integer({ min: 3, max: 12 });
    const maxBytes = fc.integer({ min: 100, max: 1_000 });
    await fc.assert(
      fc.asyncProperty(
        lagMs,
        maxEntries,
        maxBytes,
        fc.boolean(),
        richSteps,
        (lag, entries, bytes, timer, todo) =>
          new Comparison({
            ...ROOMY,
            lagMs: lag,
            timer,
            maxEntries: entries,
            maxBytes: bytes,
            exact: true,
          }).run(todo),
      ),
      { numRuns: 40, ...PATIENCE },
    );
  });
});

describe("an entry is returned until its last millisecond and not after it", () => {
  const TTLS = [
    1, 999, 1_000, 1_001, 5_999, 6_000, 6_001, 7_999, 8_000, 60_000, 4_094_001, 4_102_000, 7_200_000,
  ];

  function open(lagMs = 0): { clock: LaggingClock; table: Table<EntryTags>; page: Page } {
    const clock = new LaggingClock(lagMs);
    const table = new Table<EntryTags>({ maxEntries: 1_000, maxBytes: NEVER, clock });
    return { clock, table, page: table.openPage() };
  }

  test.each(TTLS)("while the timer runs: %i ms", async (ttl) => {
    const { clock, table, page } = open();
    const sweeper = new Sweeper(table, clock);
    sweeper.start();
    table.put(page, "a", 1, undefined, clock.now() + ttl);
    await clock.advance(ttl - 1);
    expect(page.peek("a")).toBe(1);
    await clock.advance(1);
    expect(page.peek("a")).toBeUndefined();
    sweeper.stop();
  });

  test.each(TTLS)("without any timer, however much the coarse time lags: %i ms", async (ttl) => {
    for (const lagMs of [0, 1_000, 6_000]) {
      const { clock, table, page } = open(lagMs);
      table.put(page, "a", 1, undefined, clock.now() + ttl);
      await clock.advance(ttl - 1);
      expect(page.peek("a")).toBe(1);
      await clock.advance(1);
      expect(page.peek("a")).toBeUndefined();
    }
  });

  test.each(TTLS)("when time jumps to it and the wheel is turned late: %i ms", async (ttl) => {
    for (const staleMs of [0, HOUR_MS]) {
      const { clock, table, page } = open();
      table.put(page, "a", 1, undefined, clock.now() + ttl, staleMs);
      await clock.jump(ttl - 1);
      table.turn(10);
      expect(page.peek("a")).toBe(1);
      await clock.jump(1);
      expect(page.peek("a")).toBeUndefined();
      table.turn(10);
      await clock.jump(600);
      expect(page.peek("a")).toBeUndefined();
      if (staleMs > 0) expect(table.find(page, "a")?.value).toBe(1);
    }
  });

  test.each([
    { from: 60_000, to: 3_000 },
    { from: 60_000, to: 30_000 },
    { from: 3_000, to: 60_000 },
    { from: 3_000, to: 7_200_000 },
    { from: 7_200_000, to: 7_000 },
    { from: NEVER, to: 60_000 },
    { from: NEVER, to: 1 },
  ])("when $from ms became $to ms, whether it is read in between or not", async ({ from, to }) => {
    for (const reads of [0, 16, 40]) {
      const { clock, table, page } = open();
      table.put(page, "a", 1, undefined, clock.now() + from);
      table.put(page, "a", 2, undefined, clock.now() + from);
      for (let read = 0; read < reads; read++) page.peek("a");
      await clock.advance(900);
      table.put(page, "a", 3, undefined, clock.now() + to);
      for (let read = 0; read < reads; read++) page.peek("a");
      for (let second = 0; second < 3 && to > 3_000; second++) {
        await clock.advance(1_000);
        table.turn(10);
        expect(page.peek("a")).toBe(3);
      }
      const left = (table.find(page, "a")?.expires ?? 0) - clock.now();
      expect(left).toBe(to > 3_000 ? to - 3_000 : to);
      await clock.advance(left - 1);
      expect(page.peek("a")).toBe(3);
      await clock.advance(1);
      expect(page.peek("a")).toBeUndefined();
    }
  });

  test("while a wheel that is far behind is turned entry by entry", async () => {
    const { clock, table, page } = open();
    const expires = Array.from({ length: 200 }, (_, at) => clock.now() + 10_000 + at * 50_000);
    for (const [at, time] of expires.entries()) table.put(page, `k${at}`, at, undefined, time, HOUR_MS);
    await clock.jump(5_000_000);
    const fresh = (): unknown[] => expires.map((_, at) => page.peek(`k${at}`));
    const expected = expires.map((time, at) => (clock.now() < time ? at : undefined));
    expect(fresh()).toEqual(expected);
    let turns = 0;
    for (; !table.turn(1); turns++) expect(fresh()).toEqual(expected);
    expect(turns).toBeGreaterThan(100);
    expect(fresh()).toEqual(expected);
  });

  test("even if that is in another century", async () => {
    const { clock, table, page } = open();
    table.put(page, "a", 1, undefined, clock.now() + 200 * YEAR_MS);
    for (let decade = 0; decade < 5; decade++) {
      await clock.jump(10 * YEAR_MS);
      table.turn(10);
      expect(page.peek("a")).toBe(1);
      table.put(page, "b", decade, undefined, clock.now() + 1_000);
      expect(page.peek("b")).toBe(decade);
      await clock.jump(1_000);
      expect([page.peek("a"), page.peek("b")]).toEqual([1, undefined]);
    }
  });
});

describe("the horizon", () => {
  test("is never while nothing expires, and near as soon as something does", async () => {
    const clock = new LaggingClock(0);
    const table = new Table<EntryTags>({ maxEntries: 10, maxBytes: NEVER, clock });
    const page = table.openPage();
    table.put(page, "never", 1, undefined, NEVER);
    expect([table.horizon, table.needsTending]).toEqual([NEVER, false]);
    table.put(page, "a", 1, undefined, clock.now() + HOUR_MS);
    expect(table.horizon).toBeGreaterThan(clock.now());
    expect(table.horizon).toBeLessThanOrEqual(clock.now() + 3_000);
    expect(table.needsTending).toBe(true);
    table.remove(page, "a");
    table.turn(10);
    expect([table.horizon, table.needsTending]).toEqual([NEVER, false]);
  });

  test("advances with every turn and stays while something due is left", async () => {
    const clock = new LaggingClock(0);
    const table = new Table<EntryTags>({ maxEntries: 100, maxBytes: NEVER, clock });
    const page = table.openPage();
    for (let at = 0; at < 20; at++) table.put(page, `k${at}`, at, undefined, clock.now() + HOUR_MS);
    for (let second = 0; second < 10; second++) {
      await clock.advance(1_000);
      expect(table.turn(5)).toBe(true);
      expect(table.horizon).toBeGreaterThan(clock.now() + 1_000);
    }
    const { horizon } = table;
    await clock.jump(HOUR_MS);
    for (const left of [15, 10, 5]) {
      expect([table.turn(5), table.size, table.horizon]).toEqual([false, left, horizon]);
    }
    table.turn(5);
    expect([table.size, table.horizon]).toEqual([0, NEVER]);
  });

  test("does not hide from a reader what lies beyond it", async () => {
    const clock = new LaggingClock(0);
    const table = new Table<EntryTags>({ maxEntries: 100, maxBytes: NEVER, clock });
    const page = table.openPage();
    table.put(page, "never", 1, undefined, NEVER);
    table.put(page, "hour", 2, undefined, clock.now() + HOUR_MS);
    await clock.jump(HOUR_MS - 1);
    expect(clock.now()).toBeGreaterThan(table.horizon);
    expect([page.peek("never"), page.peek("hour")]).toEqual([1, 2]);
    await clock.jump(1);
    expect([page.peek("never"), page.peek("hour")]).toEqual([1, undefined]);
  });
});
