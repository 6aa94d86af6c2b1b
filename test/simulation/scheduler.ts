// Chooses what happens next: draws the settings of a world and its steps from a seed, repeats given steps, and lets a
// world come to rest.
import { seededRandom } from "../../src/testing/manual-clock.ts";
import { drawOperation } from "./operations.ts";
import { ALL, type Step } from "./steps.ts";
import type { World, WorldSettings } from "./world.ts";

/** Which troubles a schedule has; few at a time find more than all at once. */
interface Troubles {
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

/** Steps after the last operation has begun. */
const AFTERMATH = 8;

export interface Plan {
  readonly settings: WorldSettings;
  readonly troubles: Troubles;
  readonly operations: number;
  readonly steps: number;
  /** How eagerly time passes. */
  readonly haste: number;
  /** How eagerly loads end. */
  readonly loadEnds: number;
  /** Every process is connected when the schedule begins. */
  readonly isConnected: boolean;
}

/** Lets everything that an event has caused run to its end: promises, ticks and immediates. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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

/** A narrow kind of schedule: few things happen, so that they meet in many orders. */
interface Drill {
  readonly settings: Partial<WorldSettings>;
  readonly troubles?: Partial<Troubles>;
  readonly plan?: Partial<Plan>;
}

const SLOW: Partial<Plan> = { haste: 6, loadEnds: 0.15 };
const HASTY: Partial<Plan> = { haste: 3 };

const DRILLS: readonly Drill[] = [
  // Tags that loads name themselves.
  { settings: { lateTags: true, kinds: ["getOrSet", "getOrSet", "invalidateTags"] } },
  // Stale values, and who gets them.
  {
    settings: {
      stale: true,
      processes: 3,
      kinds: ["getOrSet", "getOrSet", "getOrSet", "delete", "invalidateTags"],
    },
    plan: HASTY,
  },
  // Loads that outlast several renewals of their leases.
  { settings: { kinds: ["getOrSet", "getOrSet", "delete"] }, plan: SLOW },
  // Loads that store nothing, and who waits for them.
  { settings: { processes: 3, fails: true, kinds: ["getOrSet"] }, plan: { loadEnds: 0.6 } },
  // The near tier.
  {
    settings: { near: true, kinds: ["get", "get", "set", "delete", "invalidateTags"] },
    troubles: { holds: true },
    plan: HASTY,
  },
  // Bytes that arrive late.
  { settings: { kinds: ["set", "set", "get"] }, troubles: { holds: true, resets: true } },
  {
    settings: { hasReplica: true, kinds: ["set", "delete", "get", "invalidateTags"] },
    troubles: { failovers: true },
  },
  { settings: { kinds: ["set", "set", "delete", "invalidateTags", "get"] }, troubles: { restarts: true } },
  // What a process leaves behind.
  {
    settings: {
      processes: 3,
      kinds: ["set", "getOrSet", "getOrSet", "delete", "invalidateTags", "disconnect"],
    },
    troubles: { resets: true },
  },
];

export function drawPlan(seed: number): Plan {
  const plan = drawAnyPlan(seed);
  const random = seededRandom(Math.imul(seed, 0xc2b2ae35) ^ 0x27d4eb2f);
  if (random() < 0.6) return plan;
  const { settings, troubles, plan: others } = DRILLS[Math.floor(random() * DRILLS.length)] as Drill;
  const narrow = { keys: ["a"], namespaces: [""], hangs: false, hasReplica: false, disconnects: false };
  return {
    ...plan,
    ...others,
    isConnected: true,
    settings: { ...plan.settings, ...narrow, ...settings },
    troubles: { ...CALM, ...troubles },
  };
}

function drawAnyPlan(seed: number): Plan {
  const random = seededRandom(Math.imul(seed, 0x9e3779b1) ^ 0x5bd1e995);
  const chance = (share: number): boolean => random() < share;
  // A third of the schedules have no trouble at all, so that nothing excuses a second load.
  const isTroubled = chance(0.67);
  const trouble = (share: number): boolean => isTroubled && chance(share);
  const failovers = trouble(0.25);
  // Loads that outlast a renewal of their lease.
  const isSlow = chance(0.15);
  const settings: WorldSettings = {
    seed,
    processes: chance(0.75) ? 2 : chance(0.85) ? 3 : chance(0.7) ? 4 : 5,
    near: chance(0.55),
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
  return {
    settings,
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
}

/** Draws the next step among those that are possible now. */
class Walk {
  readonly #world: World;
  readonly #plan: Plan;
  readonly #random: () => number;
  #operationsLeft: number;
  /** Steps that follow from one already taken. */
  #queue: Step[] = [];
  /** Until then time passes faster than messages. */
  #stalledUntil = 0;
  readonly #choices: { readonly step: Step; readonly weight: number }[] = [];
  #total = 0;

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#plan = plan;
    this.#random = seededRandom(Math.imul(plan.settings.seed, 0x85ebca6b) ^ 0xc2b2ae35);
    this.#operationsLeft = plan.operations;
  }

  get isOver(): boolean {
    return this.#operationsLeft === 0;
  }

  next(): Step | undefined {
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    if (this.#world.time.elapsed < this.#stalledUntil && this.#random() < 0.7) return { do: "tick" };
    this.#choices.length = 0;
    this.#total = 0;
    this.#addMessages();
    this.#addTime();
    if (this.#operationsLeft > 0) this.#addCall();
    this.#addTroubles();
    let lot = this.#random() * this.#total;
    for (const { step, weight } of this.#choices) {
      lot -= weight;
      if (lot >= 0) continue;
      this.#follow(step);
      return step;
    }
    return undefined;
  }

  #follow(step: Step): void {
    if (step.do === "call") this.#operationsLeft--;
    // Long enough that calls time out.
    else if (step.do === "hold" && this.#random() < 0.5)
      this.#stalledUntil = this.#world.time.elapsed + 1_050;
    else if (step.do === "failover" && this.#random() < 0.4) this.#queue.push(step);
  }

  #add(weight: number, step: Step): void {
    this.#choices.push({ step, weight });
    this.#total += weight;
  }

  #count(): number {
    return this.#random() < 0.7 ? ALL : 1 + Math.floor(this.#random() * 2);
  }

  #addMessages(): void {
    const world = this.#world;
    for (let process = 0; process < world.processes.length; process++) {
      if (world.attempts(process).length > 0) this.#add(8, { do: "connect", process });
      for (const [rank, link] of world.servable(process).entries()) {
        const weight = link.isClientOpen ? 8 : 0.6;
        this.#add(weight, { do: "serve", process, rank, count: this.#count() });
      }
      for (const rank of world.deliverable(process).keys())
        this.#add(8, { do: "deliver", process, rank, count: this.#count() });
    }
    for (const rank of world.endable().keys()) this.#add(this.#plan.loadEnds, { do: "load", rank });
  }

  #addTime(): void {
    const { haste } = this.#plan;
    if (this.#world.time.nextDue !== Number.POSITIVE_INFINITY) this.#add(0.5 * haste, { do: "tick" });
    this.#add(0.3 * haste, { do: "wait", ms: this.#random() < 0.7 ? 5 : 400 });
  }

  #addCall(): void {
    const { settings } = this.#plan;
    const operation = drawOperation(settings, this.#random);
    const process = Math.floor(this.#random() * settings.processes);
    const callers =
      operation.do === "getOrSet" && this.#random() < 0.2 ? 2 + Math.floor(this.#random() * 2) : 1;
    this.#add(3, { do: "call", process, operation, callers });
  }

  #addTroubles(): void {
    const { troubles, settings } = this.#plan;
    const process = Math.floor(this.#random() * settings.processes);
    const lot = this.#random();
    if (troubles.holds) {
      const isHeld = [...this.#world.network.links].some((link) => link.process === process && link.isHeld);
      this.#add(isHeld ? 0.5 : 0.8, { do: isHeld ? "release" : "hold", process });
    }
    if (troubles.resets) this.#add(0.4, { do: "reset", process, arrives: lot < 0.6 });
    if (troubles.freezes) {
      const isFrozen = this.#world.processes[process]?.state === "frozen";
      this.#add(isFrozen ? 0.6 : 0.4, { do: isFrozen ? "thaw" : "freeze", process });
    }
    if (troubles.kills) this.#add(0.15, { do: "kill", process });
    if (troubles.evictions) this.#add(0.4, { do: "evict", rank: Math.floor(lot * 16) });
    if (troubles.clockSteps) this.#add(0.3, { do: "step clock", ms: lot < 0.5 ? -5_000 : 5_000 });
    if (troubles.restarts) this.#add(0.8, { do: lot < 0.5 ? "save" : "restart" });
    if (troubles.outages) this.#add(0.4, { do: this.#world.network.isDown ? "up" : "down" });
    if (troubles.failovers) this.#add(0.9, lot < 0.6 ? { do: "replicate", count: ALL } : { do: "failover" });
  }
}

/** Connects every process, as one that has used the cache before. */
export async function connectAll(world: World): Promise<void> {
  for (const { cache } of world.processes) cache.connect().catch(() => {});
  await deliverAll(world, false);
}

/** Performs steps drawn from the plan's seed and returns them. */
export async function walk(world: World, plan: Plan): Promise<Step[]> {
  const walking = new Walk(world, plan);
  const taken: Step[] = [];
  for (let count = 0; count < plan.steps; count++) {
    const step = walking.next();
    if (step === undefined) break;
    if (!world.apply(step)) continue;
    taken.push(step);
    if (step.do !== "wait") await settled();
    if (step.do === "tick") await settled();
    if (walking.isOver && count < plan.steps - AFTERMATH) count = plan.steps - AFTERMATH;
  }
  return taken;
}

/** Performs the given steps, as far as they are possible. */
export async function repeat(world: World, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (!world.apply(step)) continue;
    if (step.do !== "wait") await settled();
    if (step.do === "tick") await settled();
  }
}

/** Delivers everything in order until nothing is on its way; loads end unless they hang. No time passes. */
export async function deliverAll(world: World, endLoads: boolean): Promise<void> {
  await settled();
  for (let round = 0; round < 2_000; round++) {
    let isQuiet = true;
    const act = (step: Step): void => {
      if (world.apply(step)) isQuiet = false;
    };
    for (let process = 0; process < world.processes.length; process++) {
      act({ do: "connect", process });
      act({ do: "serve", process, rank: 0, count: ALL });
      act({ do: "deliver", process, rank: 0, count: ALL });
    }
    if (isQuiet && endLoads) act({ do: "load", rank: 0 });
    if (isQuiet) return;
    await settled();
  }
  throw new Error("a world that does not come to rest");
}

/** Lets time pass, delivering everything that is on its way, until `isDone` or for at most `limitMs`. */
export async function pass(world: World, limitMs: number, isDone: () => boolean): Promise<void> {
  const until = world.time.elapsed + limitMs;
  for (;;) {
    await deliverAll(world, true);
    if (isDone()) return;
    const left = until - world.time.elapsed;
    if (left <= 0) return;
    if (world.time.nextDue - world.time.now > left || !world.time.tick()) {
      world.time.pass(left);
      return;
    }
    await settled();
    await settled();
  }
}
