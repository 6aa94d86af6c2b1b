// The real core and the real Redis client of several processes, in schedules drawn from seeds, held to the guarantees.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../../scripts/simulation/bundle.mjs";
import { MUTATIONS } from "./mutations.ts";
import { type Name, type Program, programs } from "./programs.ts";
import { SimulationThread } from "./threads.ts";

const SCHEDULES = 20_000;
const THREADS = 2;
const PARTS = [0, 1, 2, 3];

let threads: readonly SimulationThread[] = [];

beforeAll(async () => {
  const url = await bundle();
  threads = Array.from({ length: THREADS }, () => new SimulationThread(url));
});

afterAll(async () => {
  await Promise.all(threads.map((thread) => thread.end()));
});

/** Calls `run` for each item, in all threads: each takes the next one when it is free. */
async function inThreads<T>(items: readonly T[], run: (thread: SimulationThread, item: T) => Promise<void>) {
  const left = [...items];
  const work = async (thread: SimulationThread): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(thread, item);
  };
  await Promise.all(threads.map(work));
}

describe("schedules", () => {
  // In parts, so that a busy machine takes long for none of them.
  test.each(PARTS)(`${SCHEDULES / PARTS.length} of them from part %i keep every guarantee`, async (part) => {
    const each = SCHEDULES / PARTS.length / THREADS;
    const outcomes = await Promise.all(
      threads.map(async (thread, at) => {
        const seed = 1 + (part * THREADS + at) * each;
        const { schedules, first } = await thread.call("simulate", { seed, schedules: each });
        const explanation = first === undefined ? [] : [await thread.call("explain", first)];
        return { schedules, explanation };
      }),
    );
    expect(outcomes.flatMap(({ explanation }) => explanation)).toEqual([]);
    expect(outcomes.reduce((sum, { schedules }) => sum + schedules, 0)).toBe(each * THREADS);
  });

  test("the same seed gives the same schedule, step by step", async () => {
    await inThreads([5, 6, 7, 8], async (thread, seed) => {
      const one = await thread.call("runSeed", seed, { hasTimeline: true });
      const other = await thread.call("runSeed", seed, { hasTimeline: true });
      expect(other.timeline).toEqual(one.timeline);
      const repeated = await thread.call("runSeed", seed, { hasTimeline: true, steps: one.steps });
      expect(repeated.timeline).toEqual(one.timeline);
    });
  });
});

describe("small programs", () => {
  const longer: readonly Program[] = [
    [["getOrSet", "get"], ["delete"]],
    [["getOrSet", "getOrSet"], ["set"]],
    [["invalidateTags", "get"], ["getOrSet"]],
  ];

  test("every interleaving of two operations, and of some programs of three, keeps every guarantee", async () => {
    await inThreads([...programs(2), ...longer], async (thread, program) => {
      const { violations, timeline } = await thread.call("explore", program);
      expect(violations, timeline.join("\n")).toEqual([]);
    });
  });

  test("no interleaving is left out for being equivalent unless it is", async () => {
    await inThreads([...programs(2), longer[0] as Program], async (thread, program) => {
      const reduced = await thread.call("explore", program);
      // Every event is tried everywhere, and only sleep sets tell what has been seen.
      const whole = await thread.call("explore", program, { triesAll: true });
      expect(reduced.interleavings, program.join(" | ")).toBe(whole.interleavings);
      expect(reduced.pruned).toBeLessThanOrEqual(whole.pruned);
    });
  });

  test("programs of all lengths are enumerated once", () => {
    const spell = ([one, other]: Program): string =>
      [one, other].map((names: readonly Name[]) => names.join()).join("|");
    const all = programs(3).map(spell);
    expect(new Set(all).size).toBe(all.length);
    expect(all).toContain("getOrSet,get|delete");
  });
});

describe("mutations of the sources", () => {
  test.each(MUTATIONS)("$name: what it replaces is in the sources, once", ({ patches }) => {
    for (const { file, find } of patches) expect(readFileSync(file, "utf8").split(find)).toHaveLength(2);
  });

  test.each([
    "a lease is not given back",
    "a missing stamp counts as the present one",
    "a reply is kept although its key changed on the way",
  ])("%s: noticed within 2,000 schedules", async (name) => {
    const mutation = MUTATIONS.find((each) => each.name === name);
    const mutated = await bundle(mutation);
    const thread = new SimulationThread(mutated);
    try {
      const { first } = await thread.call("simulate", { seed: 1, schedules: 2_000 }, true);
      expect(first?.violations ?? []).not.toEqual([]);
    } finally {
      await thread.end();
    }
  });
});

test("the simulated server does what the script of the client does", () => {
  const source = readFileSync("src/backends/kv/commands/commands.ts", "utf8");
  const script = source.slice(source.indexOf("const SWAP = script(`"), source.indexOf("return 1`);"));
  expect(script).toBe(`const SWAP = script(\`
local present = redis.call('GETRANGE', KEYS[1], \${VERSION_OFFSET}, \${VERSION_OFFSET + VERSION_LENGTH - 1})
if present ~= ARGV[1] then return redis.call('GET', KEYS[1]) end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
`);
});
