// Chooses what happens next: draws the steps of a schedule, repeats given ones, and lets a world come to rest.
import { seededRandom } from "../../src/testing/manual-clock.ts";
import { isServable } from "./network.ts";
import { drawOperation } from "./operations.ts";
import type { Plan } from "./plan.ts";
import { ALL, type Step } from "./steps.ts";
import { settled } from "./turn.ts";
import type { World } from "./world.ts";

/** Steps after the last operation has begun. */
const AFTERMATH = 8;

/**
 * If the messages of all processes are equally fast, one process hardly ever does much between two messages of another one: the
 * race of two processes that begin to use a prefix together was not in 200,000 such schedules.
 */
const SPEEDS = [0.01, 0.1, 1];
/** The share of the steps before which they change. */
const SPEED_CHANGES = 0.08;

/** Draws the next step among those that are possible now. */
class Walk {
  readonly #world: World;
  readonly #plan: Plan;
  readonly #random: () => number;
  /** Of drawn operations, or of the program. */
  #left: number;
  /** Steps that follow from one already taken. */
  #queue: Step[] = [];
  /** Until then time passes faster than messages. */
  #stalledUntil = 0;
  /** How fast the messages of each process are; those that are not mentioned have the usual speed. */
  #speeds: readonly number[] = [];
  readonly #choices: { readonly step: Step; readonly weight: number }[] = [];
  #total = 0;

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#plan = plan;
    this.#random = seededRandom(Math.imul(plan.settings.seed, 0x85ebca6b) ^ 0xc2b2ae35);
    this.#left = plan.program?.length ?? plan.operations;
  }

  get isOver(): boolean {
    return this.#left === 0 && this.#queue.length === 0;
  }

  next(): Step | undefined {
    const queued = this.#queue.shift();
    if (queued !== undefined) return queued;
    if (this.#world.time.elapsed < this.#stalledUntil && this.#random() < 0.7) return { do: "tick" };
    this.#choices.length = 0;
    this.#total = 0;
    if (this.#plan.isUneven && this.#random() < SPEED_CHANGES) this.#drawSpeeds();
    this.#addMessages();
    this.#addTime();
    if (this.#plan.program === undefined) {
      if (this.#left > 0) this.#addCall();
      this.#addTroubles();
    } else this.#addProgram();
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
    const group = this.#programmed;
    if (group !== undefined) {
      if (step !== group[0]) return;
      this.#left--;
      this.#queue.push(...group.slice(1));
    } else if (step.do === "call") this.#left--;
    // Long enough that calls time out.
    else if (step.do === "hold" && this.#random() < 0.5)
      this.#stalledUntil = this.#world.time.elapsed + 1_050;
    else if ((step.do === "failover" || step.do === "demote") && this.#random() < 0.4) this.#queue.push(step);
  }

  #add(weight: number, step: Step): void {
    this.#choices.push({ step, weight });
    this.#total += weight;
  }

  #count(): number {
    return this.#random() < 0.7 ? ALL : 1 + Math.floor(this.#random() * 2);
  }

  #drawSpeeds(): void {
    this.#speeds = this.#world.processes.map(
      () => SPEEDS[Math.floor(this.#random() * SPEEDS.length)] as number,
    );
  }

  #addMessages(): void {
    const world = this.#world;
    for (let process = 0; process < world.processes.length; process++) {
      const fast = 8 * (this.#speeds[process] ?? 1);
      if (world.isConnecting(process)) this.#add(fast, { do: "connect", process });
      let rank = 0;
      for (const link of world.network.links) {
        if (!isServable(link, process)) continue;
        const weight = link.isClientOpen ? fast : 0.6;
        this.#add(weight, { do: "serve", process, rank: rank++, count: this.#count() });
      }
      if (!world.isDeliverable(process)) continue;
      for (rank = 0; rank < world.deliverable(process).length; rank++)
        this.#add(fast, { do: "deliver", process, rank, count: this.#count() });
    }
    for (const rank of world.calls.endable().keys()) this.#add(this.#plan.loadEnds, { do: "load", rank });
  }

  /** What comes next in the program. */
  get #programmed(): readonly Step[] | undefined {
    const { program } = this.#plan;
    return program?.[program.length - this.#left];
  }

  #addProgram(): void {
    const [step] = this.#programmed ?? [];
    // In some schedules it hardly waits for messages, in others nearly always.
    const weight = [0.4, 2, 8][this.#plan.settings.seed % 3] as number;
    if (step !== undefined) this.#add(weight, step);
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
    const one = this.#oneConnection();
    if (troubles.holds) {
      const isHeld = [...this.#world.network.links].some((link) => link.process === process && link.isHeld);
      this.#add(isHeld ? 0.5 : 0.8, isHeld ? { do: "release", process } : { do: "hold", process, ...one });
    }
    if (troubles.resets) this.#add(0.4, { do: "reset", process, arrives: lot < 0.6, ...one });
    if (troubles.freezes) {
      const isFrozen = this.#world.processes[process]?.state === "frozen";
      this.#add(isFrozen ? 0.6 : 0.4, { do: isFrozen ? "thaw" : "freeze", process });
    }
    if (troubles.kills) this.#add(0.15, { do: "kill", process });
    if (troubles.evictions) this.#add(0.4, { do: "evict", rank: Math.floor(lot * 16) });
    if (troubles.clockSteps) this.#add(0.3, { do: "step clock", ms: lot < 0.5 ? -5_000 : 5_000 });
    if (troubles.restarts) this.#add(0.8, { do: lot < 0.5 ? "save" : "restart" });
    if (troubles.outages) this.#add(0.4, { do: this.#world.network.isDown ? "up" : "down" });
    if (troubles.failovers) this.#add(0.9, this.#failoverStep(lot));
  }

  /** With several connections, mostly only one of them is in trouble. */
  #oneConnection(): { readonly connection?: number } {
    const { poolSize } = this.#plan.settings;
    if (poolSize === 1 || this.#random() < 0.3) return {};
    return { connection: Math.floor(this.#random() * poolSize) };
  }

  #failoverStep(lot: number): Step {
    if (lot < 0.5 && !this.#world.store.hasTwoMasters) return { do: "replicate", count: ALL };
    if (lot < 0.65 && !this.#world.store.hasTwoMasters) return { do: "promote" };
    return { do: lot < 0.85 ? "failover" : "demote" };
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
    if (walking.isOver && count < plan.steps - AFTERMATH) count = plan.steps - AFTERMATH;
  }
  return taken;
}

/** Performs the given steps, as far as they are possible. */
export async function repeat(world: World, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (!world.apply(step)) continue;
    if (step.do !== "wait") await settled();
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
      if (world.isConnecting(process)) act({ do: "connect", process });
      if (world.isServable(process)) act({ do: "serve", process, rank: 0, count: ALL });
      if (world.isDeliverable(process)) act({ do: "deliver", process, rank: 0, count: ALL });
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
  }
}
