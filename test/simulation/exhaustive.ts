// Every interleaving of a small program: two processes, one key, one tag, at the granularity of the store's messages.
//
// Interleavings that differ only in the order of independent events are equivalent; sleep sets (Godefroid, 1996) leave out
// all but one of them. Nothing is saved and restored: each interleaving is run from the beginning.
import { check, type Violation } from "./checker.ts";
import type { Call } from "./history.ts";
import { type Operation, tagsOf } from "./operations.ts";
import { connectAll, deliverAll, settled } from "./scheduler.ts";
import type { Step } from "./steps.ts";
import { World, type WorldSettings } from "./world.ts";

export type Name = "get" | "getOrSet" | "set" | "delete" | "invalidateTags" | "clear";

/** The operations of each process, one after another. */
export type Program = readonly [readonly Name[], readonly Name[]];

export interface Exploration {
  readonly interleavings: number;
  /** Runs that were cut short because another interleaving is equivalent. */
  readonly pruned: number;
  readonly violations: readonly Violation[];
  /** Of the first interleaving with a violation. */
  readonly timeline: readonly string[];
}

const KEY = "a";
const OPERATIONS: Readonly<Record<Name, Operation>> = {
  get: { do: "get", key: KEY, namespace: "" },
  getOrSet: { do: "getOrSet", key: KEY, namespace: "", tags: tagsOf(KEY), lateTags: [], outcome: "value" },
  set: { do: "set", key: KEY, namespace: "", tags: tagsOf(KEY) },
  delete: { do: "delete", key: KEY, namespace: "" },
  invalidateTags: { do: "invalidateTags", tags: ["all"], namespace: "" },
  clear: { do: "clear", namespace: "" },
};

const SETTINGS: WorldSettings = {
  seed: 1,
  processes: 2,
  near: true,
  hasReplica: false,
  keys: [KEY],
  namespaces: [""],
  lateTags: false,
  stale: false,
  timeouts: false,
  hangs: false,
  disconnects: false,
  changes: 0,
};

/** Something that can happen next. The same thread's next event is the same event in every equivalent interleaving. */
interface Event {
  readonly thread: string;
  readonly process: number;
  readonly kind: "begin" | "local" | "serve";
  readonly step: Step;
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** A choice on the way, and what is left to try there. */
interface Choice {
  readonly enabled: readonly Event[];
  readonly asleep: readonly Event[];
  readonly done: Event[];
  chosen: Event;
}

export async function explore(program: Program, limit = Number.POSITIVE_INFINITY): Promise<Exploration> {
  const path: Choice[] = [];
  let [interleavings, pruned] = [0, 0];
  for (;;) {
    const run = new Run(program);
    if (await run.follow(path)) {
      interleavings++;
      const violations = await run.judge();
      if (violations.length > 0)
        return { interleavings, pruned, violations, timeline: await timelineOf(program, path) };
    } else pruned++;
    if (!backtrack(path) || interleavings >= limit) {
      return { interleavings, pruned, violations: [], timeline: [] };
    }
  }
}

/** Follows a path once more, taking notes. */
async function timelineOf(program: Program, path: Choice[]): Promise<readonly string[]> {
  const timeline: string[] = [];
  const run = new Run(program, timeline);
  await run.follow(path);
  await run.judge();
  return timeline;
}

/** The next path to follow; false if all have been. */
function backtrack(path: Choice[]): boolean {
  for (;;) {
    const last = path.at(-1);
    if (last === undefined) return false;
    last.done.push(last.chosen);
    const next = awake(last);
    if (next !== undefined) {
      last.chosen = next;
      return true;
    }
    path.pop();
  }
}

const among = (events: readonly Event[], { thread }: Event): boolean =>
  events.some((event) => event.thread === thread);

const awake = ({ enabled, asleep, done }: Omit<Choice, "chosen">): Event | undefined =>
  enabled.find((event) => !among(asleep, event) && !among(done, event));

/** Whether the order of two events can matter, to the world or to the checker. */
function depend(one: Event, other: Event): boolean {
  if (one.kind === "serve" && other.kind === "serve")
    return touch(one.writes, other) || touch(other.writes, one) || one.process === other.process;
  if (one.kind === "serve" || other.kind === "serve") return false;
  // What happens in a process may end a call, and whether another call began before that is what the guarantees are about.
  return one.process === other.process || one.kind === "begin" || other.kind === "begin";
}

const touch = (keys: readonly string[], { reads, writes }: Event): boolean =>
  keys.some((key) => reads.includes(key) || writes.includes(key));

class Run {
  readonly #program: Program;
  readonly #world: World;
  readonly #begun: [number, number] = [0, 0];
  readonly #latest: (Call | undefined)[] = [undefined, undefined];

  constructor(program: Program, timeline?: string[]) {
    this.#program = program;
    this.#world = new World(SETTINGS, timeline);
  }

  /** Follows the path and extends it to its end; false if every continuation is equivalent to one already seen. */
  async follow(path: Choice[]): Promise<boolean> {
    await this.#prepare();
    for (let depth = 0; ; depth++) {
      const enabled = this.#enabled();
      if (enabled.length === 0) {
        if (this.#isOver) return true;
        if (!this.#world.apply({ do: "tick" })) return true;
        await settled();
        await settled();
        depth--;
        continue;
      }
      let choice = path[depth];
      if (choice === undefined) {
        const before = path[depth - 1];
        const asleep =
          before === undefined
            ? []
            : [...before.asleep, ...before.done].filter((event) => !depend(event, before.chosen));
        const chosen = awake({ enabled, asleep, done: [] });
        if (chosen === undefined) {
          this.#world.close();
          return false;
        }
        choice = { enabled, asleep, done: [], chosen };
        path.push(choice);
      }
      this.#perform(choice.chosen);
      await settled();
    }
  }

  async judge(): Promise<Violation[]> {
    const world = this.#world;
    await deliverAll(world, true);
    world.history.healed = world.moment;
    for (const { index } of world.processes) world.readAll(index);
    await deliverAll(world, true);
    world.readStore();
    world.history.end = world.moment;
    world.close();
    return check(world.history);
  }

  get #isOver(): boolean {
    return this.#world.history.calls.every(({ end }) => end !== undefined);
  }

  /** Both processes know the stamps and have the value in their near tiers. */
  async #prepare(): Promise<void> {
    const world = this.#world;
    await connectAll(world);
    world.calls.begin(0, OPERATIONS.set);
    await deliverAll(world, false);
    for (const { index } of world.processes) world.readAll(index);
    await deliverAll(world, false);
  }

  #enabled(): Event[] {
    const events: Event[] = [];
    const world = this.#world;
    for (const process of [0, 1]) {
      const [link] = world.servable(process);
      if (link !== undefined)
        events.push({
          thread: `serve ${process}`,
          process,
          kind: "serve",
          step: { do: "serve", process, rank: 0, count: 1 },
          ...accesses(link.toServer[0] as Buffer[]),
        });
      const local = (what: string, step: Step, kind: Event["kind"] = "local"): void =>
        void events.push({ thread: `${what} ${process}`, process, kind, step, reads: [], writes: [] });
      if (world.deliverable(process).length > 0)
        local("deliver", { do: "deliver", process, rank: 0, count: 1 });
      if (world.attempts(process).length > 0) local("connect", { do: "connect", process });
      const rank = world.calls.endable().findIndex(({ run }) => run.process === process);
      if (rank >= 0) local("load", { do: "load", rank });
      const name = this.#program[process as 0 | 1][this.#begun[process as 0 | 1]];
      const isFree = this.#latest[process]?.end !== undefined || this.#latest[process] === undefined;
      if (name !== undefined && isFree)
        local("begin", { do: "call", process, operation: OPERATIONS[name], callers: 1 }, "begin");
    }
    return events;
  }

  #perform({ step, kind, process }: Event): void {
    this.#world.apply(step);
    if (kind !== "begin") return;
    this.#begun[process as 0 | 1]++;
    this.#latest[process] = this.#world.history.calls.at(-1);
  }
}

/** Which records a command reads and writes. */
function accesses(args: readonly Buffer[]): Pick<Event, "reads" | "writes"> {
  const [command, ...names] = args.map(String) as [string, ...string[]];
  switch (command) {
    case "GET":
    case "MGET":
      return { reads: names, writes: [] };
    case "SET":
    case "GETDEL":
      return { reads: [], writes: names.slice(0, 1) };
    case "DEL":
      return { reads: [], writes: names };
    case "EVALSHA":
    case "EVAL":
      return { reads: [], writes: [names[2] as string] };
    default:
      return { reads: [], writes: [] };
  }
}

const NAMES: readonly Name[] = ["get", "getOrSet", "set", "delete", "invalidateTags"];
const READS: readonly Name[] = ["get", "getOrSet"];

/** All programs of so many operations that both read and change something, each pair of processes once. */
export function programs(operations: number): Program[] {
  const sequences = (length: number): Name[][] =>
    length === 0 ? [[]] : sequences(length - 1).flatMap((head) => NAMES.map((name) => [...head, name]));
  const all: Program[] = [];
  for (let first = Math.ceil(operations / 2); first < operations; first++) {
    for (const one of sequences(first)) {
      for (const other of sequences(operations - first)) {
        if (first === operations - first && one.join() < other.join()) continue;
        const names = [...one, ...other];
        const isMixed =
          names.some((name) => READS.includes(name)) && !names.every((name) => READS.includes(name));
        if (isMixed) all.push([one, other]);
      }
    }
  }
  return all;
}
