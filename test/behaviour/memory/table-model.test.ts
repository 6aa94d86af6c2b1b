import fc from "fast-check";
import { expect, test } from "vitest";
import { heldValue } from "../../../src/backends/memory/layout/box.ts";
import type { Page } from "../../../src/backends/memory/layout/page.ts";
import { type EntryTags, Table } from "../../../src/backends/memory/table.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LIVE, MortalTagSet } from "../../backends/memory/tag-set-sample.ts";

const NEVER = Number.POSITIVE_INFINITY;

type Step =
  | {
      readonly do: "put";
      readonly page: number;
      readonly key: string;
      readonly bytes: number;
      readonly tagSet: "none" | "live" | "mortal";
    }
  | { readonly do: "read" | "remove"; readonly page: number; readonly key: string }
  | { readonly do: "sweep"; readonly most: number }
  | { readonly do: "turn"; readonly most: number }
  | { readonly do: "kill" }
  | { readonly do: "clear"; readonly page: number };

const page = fc.integer({ min: 0, max: 2 });
const key = fc.integer({ min: 0, max: 60 }).map((at) => `key ${at}`);
const most = fc.integer({ min: 1, max: 20 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("put" as const),
        page,
        key,
        bytes: fc.integer({ min: 0, max: 120 }),
        tagSet: fc.constantFrom("none" as const, "live" as const, "mortal" as const),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constantFrom("read" as const, "remove" as const), page, key }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("sweep" as const), most }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("turn" as const), most }) },
    { weight: 1, arbitrary: fc.constant({ do: "kill" as const }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const), page }) },
  ),
  { maxLength: 250, size: "max" },
);

interface Modelled {
  readonly value: number;
  readonly bytes: number;
  readonly tagSet: EntryTags | undefined;
}

interface Bounds {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

const isLive = (tagSet: EntryTags | undefined): boolean => tagSet?.isLive() ?? true;

/** A table and Maps that never evict. */
class Comparison {
  readonly table: Table<EntryTags>;
  readonly pages: readonly Page[];
  readonly models = [0, 1, 2].map(() => new Map<string, Modelled>());
  readonly #bounds: Bounds;
  readonly #evicted: [Page, string][] = [];
  #mortal = new MortalTagSet();
  #value = 0;
  /** The maximum of entries and bytes of cleared pages that may still be there. */
  #retired = { size: 0, bytes: 0 };

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.table = new Table<EntryTags>({
      ...bounds,
      clock: new ManualClock(),
      onEvict: (from, name) => this.#evicted.push([from, name]),
    });
    this.pages = this.models.map(() => this.table.openPage());
  }

  run(step: Step): void {
    const { table } = this;
    if (step.do === "put") this.#put(step);
    else if (step.do === "sweep") table.sweep(step.most);
    else if (step.do === "turn") this.#turn(step.most);
    else if (step.do === "kill") {
      this.#mortal.live = false;
      this.#mortal = new MortalTagSet();
    } else {
      const at = this.pages[step.page] as Page;
      const model = this.models[step.page] as Map<string, Modelled>;
      if (step.do === "read") {
        const entry = model.get(step.key);
        expect(at.peek(step.key)).toBe(isLive(entry?.tagSet) ? entry?.value : undefined);
      } else if (step.do === "remove") {
        const there = at.held(step.key) !== undefined;
        expect(table.remove(at, step.key)).toBe(there);
        model.delete(step.key);
      } else {
        const before = { size: table.size, bytes: table.bytes };
        table.clear(at);
        expect({ size: table.size, bytes: table.bytes }).toEqual(before);
        this.#retired.size += model.size;
        for (const { bytes } of model.values()) this.#retired.bytes += bytes;
        model.clear();
      }
    }
    for (const [from, name] of this.#evicted.splice(0)) {
      const model = this.models[this.pages.indexOf(from)];
      expect([name, isLive(model?.get(name)?.tagSet), model?.delete(name)]).toEqual([name, true, true]);
    }
    this.#agree();
  }

  /** Removes what is left of cleared pages, and nothing else. */
  finish(): void {
    this.#turn(10_000);
    this.#agree();
    for (const at of this.pages) this.table.clear(at);
    for (const model of this.models) model.clear();
    this.#turn(10_000);
    this.#agree();
    expect([this.table.size, this.table.bytes, this.table.needsTending]).toEqual([0, 0, false]);
  }

  #put(step: Step & { do: "put" }): void {
    const { maxBytes } = this.#bounds;
    const at = this.pages[step.page] as Page;
    const tagSet = step.tagSet === "none" ? undefined : step.tagSet === "live" ? LIVE : this.#mortal;
    const value = ++this.#value;
    const fits = step.bytes <= maxBytes;
    // As a namespace does: in place if that is enough.
    const isRenewed = tagSet === undefined && this.table.renew(at, step.key, value, NEVER);
    expect(isRenewed || this.table.put(at, step.key, value, tagSet, NEVER, 0, step.bytes)).toBe(fits);
    expect(heldValue(at.held(step.key))).toBe(fits ? value : undefined);
    if (fits) this.models[step.page]?.set(step.key, { value, bytes: step.bytes, tagSet });
    else this.models[step.page]?.delete(step.key);
  }

  #turn(most: number): void {
    if (this.table.turn(most)) this.#retired = { size: 0, bytes: 0 };
  }

  /** Everything stored is in the model; anything else in the model is dead. The bounds hold and the sums are right. */
  #agree(): void {
    const { table } = this;
    const wrong: string[] = [];
    let size = 0;
    let bytes = 0;
    for (const [at, stored] of this.pages.entries()) {
      const model = this.models[at] as Map<string, Modelled>;
      for (const name of stored.keys()) {
        const expected = model.get(name);
        if (heldValue(stored.held(name)) !== expected?.value) wrong.push(name);
        const found = table.find(stored, name);
        if (isLive(expected?.tagSet) ? found?.tagSet !== expected?.tagSet : found !== undefined)
          wrong.push(name);
        bytes += expected?.bytes ?? 0;
        size++;
      }
      for (const [name, { tagSet }] of model) {
        if (isLive(tagSet) && stored.held(name) === undefined) wrong.push(`${name} is gone`);
      }
    }
    if (this.#bounds.maxBytes === NEVER) bytes = 0;
    expect(wrong).toEqual([]);
    expect(table.size).toBeGreaterThanOrEqual(size);
    expect(table.bytes).toBeGreaterThanOrEqual(bytes);
    expect(table.size).toBeLessThanOrEqual(Math.min(table.maxEntries, size + this.#retired.size));
    expect(table.bytes).toBeLessThanOrEqual(Math.min(table.maxBytes, bytes + this.#retired.bytes));
  }
}

function runAgainstModel(bounds: Bounds, todo: readonly Step[]): void {
  const comparison = new Comparison(bounds);
  for (const step of todo) comparison.run(step);
  comparison.finish();
}

test("a table with room for everything agrees with a Map after every operation", () => {
  fc.assert(
    fc.property(steps, (todo) => runAgainstModel({ maxEntries: 1_000, maxBytes: NEVER }, todo)),
    { numRuns: 20 },
  );
});

test("the bound on entries holds after every operation, and only reported, removed or dead entries are gone", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), steps, (maxEntries, todo) =>
      runAgainstModel({ maxEntries, maxBytes: NEVER }, todo),
    ),
    { numRuns: 35 },
  );
});

test("the bound on bytes holds after every operation, and only reported, removed or dead entries are gone", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 1, max: 2_000 }),
      steps,
      (maxEntries, maxBytes, todo) => runAgainstModel({ maxEntries, maxBytes }, todo),
    ),
    { numRuns: 35 },
  );
});
