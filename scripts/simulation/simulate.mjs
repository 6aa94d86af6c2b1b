// `npm run simulate -- --seed 1 --schedules 100000`: deterministic schedules of simulated processes on a simulated store.
// `--mutations` shows for each mutation of the sources how many schedules it takes to notice it. `--exhaustive 4` explores every
// interleaving of every program of four operations, or, with `--skip 200 --take 100`, of a part of them; `--exhaustive 6
// --sample 20 --seed 1` of 20 programs of six. With `--mutations` it shows which programs notice a mutation.
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import { bundle } from "./bundle.mjs";
import { RUNNERS, SimulationRunner, simulateIn, spread } from "./runner.mjs";

/**
 * @typedef {typeof import("../../test/simulation/index.ts")} Simulation
 * @typedef {import("../../test/simulation/exhaustive/programs.ts").Program} Program
 */

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    schedules: { type: "string", default: "20000" },
    /** Only violations of one check. */
    only: { type: "string" },
    /** Only schedules of one drill, by its name. */
    drill: { type: "string" },
    exhaustive: { type: "string" },
    /** One program instead of all, such as "getOrSet,get|delete". */
    program: { type: "string" },
    /** Only this many of the programs, drawn by the seed. */
    sample: { type: "string" },
    /** Leaves out this many of the programs, which were explored before. */
    skip: { type: "string", default: "0" },
    /** Explores only this many of those that are left. */
    take: { type: "string" },
    mutations: { type: "boolean", default: false },
    /** Only mutations whose name contains this. */
    named: { type: "string", default: "" },
  },
});

/** @param {string | undefined} text @param {string} name */
function wholeNumber(text, name) {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  console.error(`--${name} must be a whole number, got ${text}`);
  process.exit(2);
}

/**
 * @param {import("../../test/simulation/mutations.ts").Mutation} [mutation]
 * @returns {Promise<Simulation>}
 */
const load = async (mutation) => import(await bundle(mutation));

/** Of the random schedules. */
const options = {
  seed: wholeNumber(values.seed, "seed"),
  schedules: wholeNumber(values.schedules, "schedules"),
  only: /** @type {any} */ (values.only),
  drill: values.drill,
};

async function run() {
  const url = await bundle();
  const runners = Array.from({ length: RUNNERS }, () => new SimulationRunner(url));
  const begun = performance.now();
  const result = await simulateIn(runners, options);
  const seconds = (performance.now() - begun) / 1_000;
  const times = await Promise.all(runners.map((runner) => runner.call("processorMs")));
  for (const runner of runners) runner.end();
  const each = times.reduce((sum, ms) => sum + ms) / result.schedules;
  console.log(
    `${result.schedules} schedules from seed ${options.seed} in ${seconds.toFixed(1)} s, ${each.toFixed(2)} ms of processor time each`,
  );
  for (const [check, { count, seeds }] of Object.entries(result.failures))
    console.log(`  ${check}: ${count} schedules, seeds ${seeds.join(", ")}`);
  if (result.first === undefined) return 0;
  const { explain } = await load();
  console.log(`\n${await explain(result.first)}`);
  return 1;
}

async function runMutations() {
  const { MUTATIONS } = await load();
  let missed = 0;
  console.log("| mutation | schedules until noticed | by the check |\n|---|---|---|");
  const chosen = MUTATIONS.filter(({ name }) => name.includes(values.named));
  // A mutation for each runner: another bundle is compiled from the beginning.
  await spread(Array.from({ length: RUNNERS }), chosen, async (_, mutation) => {
    const runner = new SimulationRunner(await bundle(mutation));
    const { schedules, first } = await runner.call("simulate", options, true);
    if (first === undefined) missed++;
    const found = first === undefined ? "not found" : String(schedules);
    console.log(`| ${mutation.name} | ${found} | ${first?.violations[0]?.check ?? ""} |`);
    if (first !== undefined && values.named !== "") console.log(await runner.call("explain", first));
    runner.end();
  });
  return missed === 0 ? 0 : 1;
}

/**
 * @param {Simulation["programs"]} programs
 * @returns {Program[]}
 */
function chosenPrograms(programs) {
  if (values.program !== undefined)
    return [/** @type {any} */ (values.program.split("|").map((names) => names.split(",")))];
  const all = programs(wholeNumber(values.exhaustive, "exhaustive"));
  const chosen = values.sample === undefined ? all : drawn(all, wholeNumber(values.sample, "sample"));
  const skipped = wholeNumber(values.skip, "skip");
  return chosen.slice(
    skipped,
    values.take === undefined ? undefined : skipped + wholeNumber(values.take, "take"),
  );
}

/**
 * Some of a list, each at most once; the same for the same seed.
 * @template T
 * @param {T[]} list
 * @param {number} count
 */
function drawn(list, count) {
  const seed = wholeNumber(values.seed, "seed");
  const rank = (/** @type {number} */ at) => createHash("sha256").update(`${seed} ${at}`).digest("hex");
  return list
    .map((item, at) => ({ item, rank: rank(at) }))
    .sort((one, other) => (one.rank < other.rank ? -1 : 1))
    .slice(0, count)
    .map(({ item }) => item);
}

async function exploreMutations() {
  const { MUTATIONS } = await load();
  console.log("| mutation | situations until noticed | program | by the check |\n|---|---|---|---|");
  for (const mutation of MUTATIONS.filter(({ name }) => name.includes(values.named))) {
    const { explore, programs } = await load(mutation);
    let situations = 0;
    let found = "not noticed | |";
    for (const program of chosenPrograms(programs)) {
      const result = await explore(program);
      situations += result.situations;
      if (result.violations.length === 0) continue;
      const text = program.map((names) => names.join(", ")).join(" beside ");
      found = `${situations} | ${text} | ${result.violations[0]?.check}`;
      break;
    }
    console.log(`| ${mutation.name} | ${found} |`);
  }
  return 0;
}

/**
 * Programs with the same first process, whose states one runner learns for all of them.
 * @param {readonly Program[]} chosen
 */
function groupsOf(chosen) {
  /** @type {Map<string, Program[]>} */
  const groups = new Map();
  for (const program of chosen) {
    const first = program[0].join();
    const group = groups.get(first);
    if (group === undefined) groups.set(first, [program]);
    else group.push(program);
  }
  return [...groups.values()];
}

/** What is known of the processes is kept for the next program; above this a runner begins again. */
const MOST_MB = 6_000;
/** One program of six may take more than V8 allows by itself. */
const HEAP = ["--max-old-space-size=10000"];

async function runExhaustive() {
  const { programs } = await load();
  const url = await bundle();
  const chosen = chosenPrograms(programs);
  let [situations, endings, processorMs, explored] = [0, 0, 0, 0];
  /** @type {{ text: string, result: Awaited<ReturnType<Simulation["explore"]>> } | undefined} */
  let failed;
  const begin = () => new SimulationRunner(url, HEAP);
  const end = async (/** @type {SimulationRunner} */ runner) => {
    processorMs += await runner.call("processorMs");
    runner.end();
  };
  const seats = Array.from({ length: RUNNERS }, () => ({ runner: begin() }));
  const explore = async (/** @type {typeof seats[number]} */ seat, /** @type {Program} */ program) => {
    if (failed !== undefined) return;
    const result = await seat.runner.call("explore", program);
    const text = program.map((names) => names.join(",")).join("|");
    // A run over many programs takes hours: what it has done by then is known if it is ended.
    console.log(`${text}: ${result.situations} situations, ${result.endings.length} endings`);
    situations += result.situations;
    endings += result.endings.length;
    explored++;
    if (result.violations.length > 0) failed ??= { text, result };
    if ((await seat.runner.call("memoryMb")) < MOST_MB) return;
    await end(seat.runner);
    seat.runner = begin();
  };
  await spread(seats, groupsOf(chosen), async (seat, group) => {
    for (const program of group) await explore(seat, program);
  });
  for (const { runner } of seats) await end(runner);
  console.log(
    `${explored} programs: ${situations} situations, ${endings} different endings, ${(processorMs / 1_000).toFixed(0)} s of processor time`,
  );
  if (failed === undefined) return 0;
  const { text, result } = failed;
  console.log(`${text}:\n${result.violations.map(({ message }) => message).join("\n")}`);
  console.log(result.timeline.join("\n"));
  return 1;
}

const isExhaustive = values.exhaustive !== undefined || values.program !== undefined;
const exhaustive = values.mutations ? exploreMutations : runExhaustive;
const random = values.mutations ? runMutations : run;
process.exit(await (isExhaustive ? exhaustive : random)());
