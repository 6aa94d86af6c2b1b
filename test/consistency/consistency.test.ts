// Several processes on one real store that is killed, frozen, failed over and flushed: the guarantees hold.
import { expect, test } from "vitest";
import type { Setting } from "./plan.ts";
import { report, runRound } from "./round.ts";

const SECONDS = 15;
const seed = Number(process.env.XCACHE_CONSISTENCY_SEED ?? Math.floor(Math.random() * 1e6));

const scenarios: readonly [string, Pick<Setting, "store" | "near">][] = [
  ["one server with a near tier", { store: "one", near: true }],
  ["one server without one", { store: "one", near: false }],
  ["a master behind sentinels", { store: "sentinel", near: true }],
  ["a cluster", { store: "cluster", near: true }],
];

// The seed is in the title so that it is also reported when a run throws or takes too long.
const title = `guarantees 1 to 6 hold on %s (seed ${seed})`;

test.each(scenarios)(title, async (_name, given) => {
  const outcome = await runRound({ seed, seconds: SECONDS, ...given });
  const { counts } = outcome;
  expect(outcome.violations, report(outcome)).toEqual([]);
  // A cache that stores nothing would keep every guarantee, and so would a store without faults.
  expect(counts.hits).toBeGreaterThan(counts.loads);
  expect(counts.shared).toBeGreaterThan(100);
  expect(counts.changes).toBeGreaterThan(50);
  expect(counts.faults).toBeGreaterThanOrEqual(2);
});
