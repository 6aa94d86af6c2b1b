// The real core and the real Redis client of several processes, in schedules drawn from seeds, held to the guarantees.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundle } from "../../scripts/simulation/bundle.mjs";
import { RUNNERS, SimulationRunner, simulateIn, spread } from "../../scripts/simulation/runner.mjs";
import { type Name, type Program, programs } from "./exhaustive/programs.ts";
import { MUTATIONS } from "./mutations.ts";

const SCHEDULES = 20_000;
const PARTS = [0, 1, 2, 3];

let runners: readonly SimulationRunner[] = [];

beforeAll(async () => {
  const url = await bundle();
  runners = Array.from({ length: RUNNERS }, () => new SimulationRunner(url));
});

afterAll(() => {
  for (const runner of runners) runner.end();
});

describe("schedules", () => {
  // In parts, so that a busy machine takes long for none of them.
  test.each(PARTS)(`${SCHEDULES / PARTS.length} of them from part %i keep every guarantee`, async (part) => {
    const schedules = SCHEDULES / PARTS.length;
    const result = await simulateIn(runners, { seed: 1 + part * schedules, schedules });
    const [runner] = runners;
    expect(result.first === undefined ? [] : [await runner?.call("explain", result.first)]).toEqual([]);
    expect(result.schedules).toBe(schedules);
  });

  test("a delete whose first answer comes from the former master is repeated on the next one", async () => {
    const drill = "two connections that lead to two masters for a while";
    const result = await simulateIn(runners, { seed: 1, schedules: 30, drill });
    const [runner] = runners;
    expect(result.first === undefined ? [] : [await runner?.call("explain", result.first)]).toEqual([]);
  });

  test("the same seed gives the same schedule, step by step", async () => {
    await spread(runners, [5, 6, 7, 8], async (runner, seed) => {
      const one = await runner.call("runSeed", seed, { hasTimeline: true });
      const other = await runner.call("runSeed", seed, { hasTimeline: true });
      expect(other.timeline).toEqual(one.timeline);
      const repeated = await runner.call("runSeed", seed, { hasTimeline: true, steps: one.steps });
      expect(repeated.timeline).toEqual(one.timeline);
    });
  });
});

describe("small programs", () => {
  const longer: readonly Program[] = [
    [["getOrSet", "get"], ["delete"]],
    [["getOrSet", "getOrSet"], ["set"]],
    [["invalidateTags", "get"], ["getOrSet"]],
    [["getOrSet", "delete"], ["getOrSet"]],
    // Here a stricter account comes after a milder one.
    [["get", "set"], ["invalidateTags"]],
  ];

  const everyFourth = programs(3).filter((_, at) => at % 4 === 0);

  test("every interleaving of two operations, and of a quarter of the programs of three, keeps every guarantee", async () => {
    await spread(runners, [...programs(2), ...longer, ...everyFourth], async (runner, program) => {
      const { violations, timeline } = await runner.call("explore", program);
      expect(violations, timeline.join("\n")).toEqual([]);
    });
  });

  test("no interleaving is left out unless another one is held to as much", async () => {
    await spread(runners, [...programs(2), ...longer], async (runner, program) => {
      const { situations, allSituations, missing } = await runner.call("coverageOf", program);
      expect(missing, program.join(" | ")).toEqual([]);
      expect(situations).toBeLessThan(allSituations);
    });
  });

  test("what is found is what happens in one world with both processes", async () => {
    await spread(runners, [...programs(2), ...longer], async (runner, program) => {
      expect(await runner.call("differencesIn", program), program.join(" | ")).toEqual([]);
    });
  });

  test("an exploration of a mutation finds the violation and shows how it comes about", async () => {
    const mutation = MUTATIONS.find(({ name }) => name === "a missing stamp counts as the present one");
    const runner = new SimulationRunner(await bundle(mutation));
    try {
      const found = await runner.call("explore", [["invalidateTags"], ["get"]]);
      expect(found.violations).not.toEqual([]);
      expect(found.timeline.join("\n")).toContain(found.violations[0]?.message.split(" ")[1]);
    } finally {
      runner.end();
    }
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
    const runner = new SimulationRunner(mutated);
    try {
      const { first } = await runner.call("simulate", { seed: 1, schedules: 2_000 }, true);
      expect(first?.violations ?? []).not.toEqual([]);
    } finally {
      runner.end();
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
