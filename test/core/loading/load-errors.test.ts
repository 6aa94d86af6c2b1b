// A load's error reaches every caller who came before it ended, and nobody who came later.
import { beforeEach, describe, expect, it } from "vitest";
import type { Load } from "../../../src/core/options.ts";
import { fail, LoadBench } from "./load-bench.ts";

const KEY = "k";
const own = new Error("the load's own");
let bench: LoadBench;
beforeEach(() => {
  bench = new LoadBench();
});

/** A call whose question to the store was refused immediately, as by an open circuit. */
const afterRefusal = async <T>(load: Load<T>): Promise<unknown> => {
  const { value } = await bench.load(load, undefined, KEY, { found: undefined, failed: true });
  return value;
};

/** A call whose load asks the store, which refuses immediately. */
const withRefusal = <T>(load: Load<T>): Promise<unknown> => {
  bench.broken = { find: fail, admit: fail };
  return bench.value(load);
};

const answered = <T>(load: Load<T>): Promise<unknown> => bench.value(load);

const refused = [
  ["the call", afterRefusal],
  ["the load", withRefusal],
] as const;

/** Two at once, and one later in the same turn. */
async function callsOfOneTurn<T>(
  call: (load: Load<T>) => Promise<unknown>,
  load: Load<T>,
): Promise<readonly Promise<unknown>[]> {
  const calls = [call(load), call(load)];
  for (let step = 0; step < 20; step++) await Promise.resolve();
  calls.push(call(load));
  return calls;
}

describe.each(refused)("a store that refuses %s immediately", (_, call) => {
  it("all calls of one turn share the load that fails immediately, and its error", async () => {
    let loads = 0;
    const load = (): never => {
      loads++;
      throw own;
    };
    const outcomes = await Promise.allSettled(await callsOfOneTurn(call, load));
    expect(outcomes.map((outcome) => "reason" in outcome && outcome.reason)).toEqual([own, own, own]);
    expect(loads).toBe(1);
  });

  it("all calls of one turn share the value of a load that ends immediately", async () => {
    let loads = 0;
    const load = (): number => ++loads;
    expect(await Promise.all(await callsOfOneTurn(call, load))).toEqual([1, 1, 1]);
  });
});

describe("a call made after a load has failed but before its callers are notified", () => {
  it.each([...refused, ["nobody", answered] as const])(
    "starts its own load: thrown immediately, with a store that refuses %s",
    async (_, call) => {
      let later: Promise<unknown> | undefined;
      const failing = (): never => {
        queueMicrotask(() => {
          later = call(() => "newer");
        });
        throw own;
      };
      await expect(call(failing)).rejects.toBe(own);
      expect(await later).toBe("newer");
    },
  );

  it("starts its own load: rejected", async () => {
    let later: Promise<unknown> | undefined;
    const failing = (): Promise<never> => {
      const failed = Promise.reject(own);
      // One microtask after the waiters of the load are notified.
      const notified = failed.catch(() => {});
      notified.then(() => {
        later = bench.value(() => "newer");
      }, fail);
      return failed;
    };
    await expect(bench.value(failing)).rejects.toBe(own);
    expect(await later).toBe("newer");
    expect(bench.space.peek(KEY)).toBe("newer");
    expect(bench.space.changes.watched).toBe(false);
  });
});
