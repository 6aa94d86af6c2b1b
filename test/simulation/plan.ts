// What a schedule is about: the settings of its world, its troubles, and the operations that meet, drawn from a seed.
import { seededRandom } from "../../src/testing/manual-clock.ts";
import { APART, DRILLS, type Drill, type Program } from "./drills.ts";
import type { WorldSettings } from "./world.ts";

/** Which troubles a schedule has; few at a time find more than all at once. */
export interface Troubles {
  readonly holds: boolean;
  readonly resets: boolean;
  readonly freezes: boolean;
  readonly kills: boolean;
  readonly evictions: boolean;
  readonly clockSteps: boolean;
  readonly restarts: boolean;
  readonly outages: boolean;
  readonly failovers: boolean;
}

export interface Plan {
  readonly settings: WorldSettings;
  readonly troubles: Troubles;
  readonly operations: number;
  readonly steps: number;
  /** How eagerly time passes. */
  readonly haste: number;
  /** How eagerly loads end. */
  readonly loadEnds: number;
  /** Done in this order, with messages and time in between, in place of drawn operations and troubles. */
  readonly program?: Program;
  /** Every process is connected when the schedule begins. */
  readonly isConnected: boolean;
  /** For a while, the messages of one process are much faster than those of another one. */
  readonly isUneven: boolean;
}

const CALM: Troubles = {
  holds: false,
  resets: false,
  freezes: false,
  kills: false,
  evictions: false,
  clockSteps: false,
  restarts: false,
  outages: false,
  failovers: false,
};

/** `drill`: the name of the only one. */
export function drawPlan(seed: number, drill?: string): Plan {
  const plan = { ...drawAnyPlan(seed), isUneven: seed % 3 === 0 };
  const random = seededRandom(Math.imul(seed, 0xc2b2ae35) ^ 0x27d4eb2f);
  if (drill === undefined && random() < 0.6) return plan;
  const drawn = DRILLS[Math.floor(random() * DRILLS.length)] as Drill;
  const { settings, troubles, program, plan: others } = DRILLS.find(({ name }) => name === drill) ?? drawn;
  // The keys of a program are given.
  const poolSize = program === undefined ? plan.settings.poolSize : 1;
  const narrow = {
    poolSize,
    keys: [poolSize === 1 ? "a" : APART],
    namespaces: [""],
    hangs: false,
    hasReplica: false,
    disconnects: false,
  };
  return {
    ...plan,
    isConnected: true,
    ...others,
    ...(program === undefined ? {} : { program, steps: 2 * program.flat().length + 80 }),
    settings: { ...plan.settings, ...narrow, ...settings },
    troubles: { ...CALM, ...troubles },
  };
}

function drawAnyPlan(seed: number): Omit<Plan, "isUneven"> {
  const random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995);
  const chance = (share: number): boolean => random() < share;
  // A third of the schedules have no trouble at all, so that nothing excuses a second load.
  const isTroubled = chance(0.67);
  const trouble = (share: number): boolean => isTroubled && chance(share);
  const failovers = trouble(0.25);
  // Loads that outlast a renewal of their lease.
  const isSlow = chance(0.15);
  const drawn: WorldSettings = {
    seed,
    processes: chance(0.75) ? 2 : chance(0.85) ? 3 : chance(0.7) ? 4 : 5,
    near: chance(0.55),
    poolSize: 1,
    hasReplica: failovers,
    keys: chance(0.6) ? ["a"] : ["a", "b"],
    namespaces: chance(0.85) ? [""] : ["", "c"],
    lateTags: chance(0.35),
    stale: chance(0.3),
    timeouts: chance(0.3),
    hangs: chance(0.05),
    disconnects: chance(0.15),
    changes: 0.2 + random() * 0.4,
  };
  const plan = {
    settings: drawn,
    troubles: {
      holds: trouble(0.4),
      resets: trouble(0.35),
      freezes: trouble(0.2),
      kills: trouble(0.12),
      evictions: trouble(0.2),
      clockSteps: trouble(0.1),
      restarts: trouble(0.2),
      outages: trouble(0.15),
      failovers,
    },
    operations: 3 + Math.floor(random() * 7),
    steps: 80,
    haste: isSlow ? 6 : chance(0.5) ? 0.3 : 2,
    loadEnds: isSlow ? 0.15 : 1.2,
    isConnected: chance(0.8),
  };
  return chance(0.25) ? { ...plan, settings: pooled(drawn) } : plan;
}

/** Two connections for each process: one of them for stamps, the other one for one of the keys. */
const pooled = (settings: WorldSettings): WorldSettings => ({
  ...settings,
  poolSize: 2,
  keys: settings.keys.length === 1 ? [APART] : ["a", APART],
});
