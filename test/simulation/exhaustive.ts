// Every interleaving of a small program: two processes, one key, one tag, at the granularity of the store's messages.
//
// Interleavings that differ only in the order of independent events are equivalent. Only the places where events race are
// tried in another order (races.ts), and sleep sets (Godefroid, 1996) leave out what has been seen from another place.
// Nothing is saved and restored: each interleaving is run from the beginning.
import { check, type Violation } from "./checker.ts";
import { accesses, depend, type Event, HistoryState, type PerformedEvent } from "./dependence.ts";
import type { Call } from "./history.ts";
import { type Operation, tagsOf } from "./operations.ts";
import type { Name, Program } from "./programs.ts";
import { type PlacedEvent, racesOf } from "./races.ts";
import { connectAll, deliverAll } from "./scheduler.ts";
import type { Step } from "./steps.ts";
import { settled } from "./turn.ts";
import { World, type WorldSettings } from "./world.ts";

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
  poolSize: 1,
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

/** The sender of what a timer has sent. */
const BY_TIME = -1;

export interface ExploreOptions {
  /** Interleavings at most. */
  readonly limit?: number;
  /** Tries every event everywhere, to see that nothing is left out otherwise. */
  readonly triesAll?: boolean;
}

/** A choice on the way, and what is left to try there. */
interface Choice {
  readonly enabled: readonly Event[];
  readonly asleep: readonly PerformedEvent[];
  readonly done: PerformedEvent[];
  /** The threads to try. */
  readonly tried: Set<string>;
  chosen: Event;
  /** The same event, once it was performed. */
  performed?: PlacedEvent;
}

export async function explore(program: Program, options: ExploreOptions = {}): Promise<Exploration> {
  const { limit = Number.POSITIVE_INFINITY, triesAll = false } = options;
  const path: Choice[] = [];
  let [interleavings, pruned] = [0, 0];
  for (;;) {
    const run = new Run(program);
    if (await run.follow(path, triesAll)) {
      interleavings++;
      const violations = await run.judge();
      if (violations.length > 0)
        return { interleavings, pruned, violations, timeline: await timelineOf(program, path) };
    } else pruned++;
    reverseRaces(path);
    if (!backtrack(path) || interleavings >= limit) {
      return { interleavings, pruned, violations: [], timeline: [] };
    }
  }
}

/** Where events raced, the other order is to be tried, unless an equivalent one is already. */
function reverseRaces(path: readonly Choice[]): void {
  for (const { at, threads } of racesOf(path.map(({ performed }) => performed as PlacedEvent))) {
    const { enabled, tried } = path[at] as Choice;
    const possible = threads.filter((thread) => enabled.some((event) => event.thread === thread));
    if (possible.length > 0 && !possible.some((thread) => tried.has(thread)))
      tried.add(possible.at(-1) as string);
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
    last.done.push(last.performed as PlacedEvent);
    const next = awake(last).find(({ thread }) => last.tried.has(thread));
    if (next !== undefined) {
      last.chosen = next;
      return true;
    }
    path.pop();
  }
}

const among = (events: readonly Event[], { thread }: Event): boolean =>
  events.some((event) => event.thread === thread);

const awake = ({ enabled, asleep, done }: Pick<Choice, "enabled" | "asleep" | "done">): Event[] =>
  enabled.filter((event) => !among(asleep, event) && !among(done, event));

class Run {
  readonly #program: Program;
  readonly #world: World;
  readonly #begun: [number, number] = [0, 0];
  readonly #latest: (Call | undefined)[] = [undefined, undefined];
  /** Which event sent a message. */
  readonly #senders = new WeakMap<object, number>();
  #epoch = 0;

  constructor(program: Program, timeline?: string[]) {
    this.#program = program;
    this.#world = new World(SETTINGS, timeline);
  }

  /** Follows the path and extends it to its end; false if every continuation is equivalent to one already seen. */
  async follow(path: Choice[], triesAll = false): Promise<boolean> {
    await this.#prepare();
    for (let depth = 0; ; depth++) {
      const enabled = this.#enabled();
      if (enabled.length === 0) {
        if (this.#isOver) return true;
        if (!this.#world.apply({ do: "tick" })) return true;
        this.#epoch++;
        await settled();
        this.#sent(BY_TIME);
        depth--;
        continue;
      }
      let choice = path[depth];
      if (choice === undefined) {
        const asleep = stillAsleep(path[depth - 1]);
        const [chosen] = awake({ enabled, asleep, done: [] });
        if (chosen === undefined) {
          this.#world.close();
          return false;
        }
        const tried = new Set((triesAll ? enabled : [chosen]).map(({ thread }) => thread));
        choice = { enabled, asleep, done: [], tried, chosen };
        path.push(choice);
      }
      choice.performed = await this.#perform(choice.chosen, depth);
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
          ...accesses(link.toServer[0] as string[]),
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

  async #perform(event: Event, place: number): Promise<PlacedEvent> {
    const { step, kind, process } = event;
    const { history } = this.#world;
    const [link] = kind === "serve" ? this.#world.servable(process) : this.#world.deliverable(process);
    const message = kind === "serve" ? link?.toServer[0] : link?.toClient[0];
    const isMessage = step.do === "serve" || step.do === "deliver";
    const sentBy = isMessage && message !== undefined ? this.#senders.get(message) : undefined;
    const before = new HistoryState(history);
    this.#world.apply(step);
    if (kind === "begin") {
      this.#begun[process as 0 | 1]++;
      this.#latest[process] = history.calls.at(-1);
    }
    await settled();
    const sentTo = this.#sent(place);
    return { ...event, sentBy, epoch: this.#epoch, marks: before.marksOf(history), sentTo };
  }

  /** Notes who sent the messages that are new. Returns the processes that they are for. */
  #sent(by: number): number[] {
    const receivers = new Set<number>();
    for (const { process, toServer, toClient } of this.#world.network.links) {
      for (const message of toServer) if (!this.#senders.has(message)) this.#senders.set(message, by);
      for (const message of toClient) {
        if (this.#senders.has(message)) continue;
        this.#senders.set(message, by);
        receivers.add(process);
      }
    }
    return [...receivers];
  }
}

/** What need not be tried after a choice either, because it could as well have come before it. */
function stillAsleep(before: Choice | undefined): PerformedEvent[] {
  if (before === undefined) return [];
  const { asleep, done, performed } = before;
  return [...asleep, ...done].filter((event) => !depend(event, performed as PlacedEvent));
}
