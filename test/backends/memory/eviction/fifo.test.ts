import fc from "fast-check";
import { expect, test } from "vitest";
import { Fifo } from "../../../../src/backends/memory/eviction/fifo.ts";
import { expectSame } from "../../../support/same.ts";

test("a queue returns its items in order, across growth and with some of them dropped", () => {
  const steps = fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          push: fc.array(fc.integer({ min: 0, max: 1_000 }), { maxLength: 20, size: "max" }),
        }),
      },
      { weight: 30, arbitrary: fc.constant("shift" as const) },
      { weight: 1, arbitrary: fc.record({ dropMultiplesOf: fc.integer({ min: 2, max: 9 }) }) },
    ),
    { maxLength: 200, size: "max" },
  );
  fc.assert(
    fc.property(steps, (todo) => {
      const queue = new Fifo();
      let model: number[] = [];
      for (const step of todo) {
        if (step === "shift") {
          if (model.length > 0) expectSame(queue.shift(), model.shift());
        } else if ("push" in step) {
          for (const slot of step.push) queue.push(slot);
          model.push(...step.push);
        } else {
          const asked: number[] = [];
          queue.retain((slot) => {
            asked.push(slot);
            return slot % step.dropMultiplesOf !== 0;
          });
          expect(asked).toEqual(model.toReversed());
          model = model.filter((slot) => slot % step.dropMultiplesOf !== 0);
        }
        expectSame(queue.length, model.length);
      }
      while (model.length > 0) expectSame(queue.shift(), model.shift());
    }),
    { numRuns: 40 },
  );
});
