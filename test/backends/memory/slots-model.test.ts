import fc from "fast-check";
import { expect, test } from "vitest";
import { type SlotIndex, type SlotSeal, Slots } from "../../../src/backends/memory/slots.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { LIVE, MortalSeal } from "./seal.ts";

const NEVER = Number.POSITIVE_INFINITY;

type Step =
  | {
      readonly do: "put";
      readonly index: number;
      readonly key: string;
      readonly bytes: number;
      readonly mortal: boolean;
    }
  | { readonly do: "read" | "remove"; readonly index: number; readonly key: string }
  | { readonly do: "sweep"; readonly slots: number }
  | { readonly do: "kill" }
  | { readonly do: "clear"; readonly index: number };

const index = fc.integer({ min: 0, max: 2 });
const key = fc.integer({ min: 0, max: 60 }).map((at) => `key ${at}`);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 12,
      arbitrary: fc.record({
        do: fc.constant("put" as const),
        index,
        key,
        bytes: fc.integer({ min: 0, max: 120 }),
        mortal: fc.boolean(),
      }),
    },
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constantFrom("read" as const, "remove" as const), index, key }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant("sweep" as const), slots: fc.integer({ min: 1, max: 20 }) }),
    },
    { weight: 1, arbitrary: fc.constant({ do: "kill" as const }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("clear" as const), index }) },
  ),
  { maxLength: 250, size: "max" },
);

interface Modelled {
  readonly value: number;
  readonly bytes: number;
  readonly seal: SlotSeal;
}

interface Bounds {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

/** Runs the steps on the store and on Maps that never evict, and compares after each. */
function runAgainstModel(bounds: Bounds, todo: readonly Step[]): void {
  const evicted: [SlotIndex, string][] = [];
  const slots = new Slots<SlotSeal>({
    ...bounds,
    clock: new ManualClock(),
    onEvict: (from, name) => evicted.push([from, name]),
  });
  const indexes = [slots.openIndex(), slots.openIndex(), slots.openIndex()];
  const models = indexes.map(() => new Map<string, Modelled>());
  let mortal = new MortalSeal();
  let value = 0;
  for (const step of todo) {
    if (step.do === "put") {
      const seal = step.mortal ? mortal : LIVE;
      const at = indexes[step.index] as SlotIndex;
      const slot = slots.put(at, step.key, ++value, seal, 0, NEVER, NEVER, step.bytes);
      expect(slot === -1).toBe(step.bytes > bounds.maxBytes);
      if (slot === -1) models[step.index]?.delete(step.key);
      else models[step.index]?.set(step.key, { value, bytes: step.bytes, seal });
      expect(at.get(step.key) ?? -1).toBe(slot);
    } else if (step.do === "read") {
      const slot = indexes[step.index]?.get(step.key);
      if (slot !== undefined) slots.touch(slot);
    } else if (step.do === "remove") {
      const there = indexes[step.index]?.has(step.key) ?? false;
      expect(slots.remove(indexes[step.index] as SlotIndex, step.key)).toBe(there);
      models[step.index]?.delete(step.key);
    } else if (step.do === "sweep") {
      slots.sweep(step.slots);
    } else if (step.do === "kill") {
      mortal.live = false;
      mortal = new MortalSeal();
    } else {
      slots.clearIndex(indexes[step.index] as SlotIndex);
      models[step.index]?.clear();
    }
    for (const [from, name] of evicted.splice(0)) {
      expect(models[indexes.indexOf(from)]?.get(name)?.seal.isLive()).toBe(true);
      models[indexes.indexOf(from)]?.delete(name);
    }
    expectAgreement(slots, indexes, models);
  }
}

/** Everything stored is in the model; what the model has besides is dead. The bounds hold and the sums are right. */
function expectAgreement(
  slots: Slots<SlotSeal>,
  indexes: readonly SlotIndex[],
  models: readonly Map<string, Modelled>[],
): void {
  const wrong: string[] = [];
  let size = 0;
  let bytes = 0;
  for (const [at, stored] of indexes.entries()) {
    const model = models[at] as Map<string, Modelled>;
    for (const [name, slot] of stored) {
      const expected = model.get(name);
      if (slots.values[slot] !== expected?.value || slots.seals[slot] !== expected?.seal) wrong.push(name);
      bytes += expected?.bytes ?? 0;
      size++;
    }
    for (const [name, { seal }] of model)
      if (seal.isLive() && !stored.has(name)) wrong.push(`${name} is gone`);
  }
  expect({ wrong, size: slots.size, bytes: slots.bytes }).toEqual({ wrong: [], size, bytes });
  expect(size <= slots.maxEntries && bytes <= slots.maxBytes).toBe(true);
}

test("a store with room for everything agrees with a Map after every operation", () => {
  fc.assert(
    fc.property(steps, (todo) => runAgainstModel({ maxEntries: 1_000, maxBytes: NEVER }, todo)),
    { numRuns: 30 },
  );
});

test("the bound on entries holds after every operation, and only reported, removed or dead entries are gone", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), steps, (maxEntries, todo) =>
      runAgainstModel({ maxEntries, maxBytes: NEVER }, todo),
    ),
    { numRuns: 50 },
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
    { numRuns: 50 },
  );
});
