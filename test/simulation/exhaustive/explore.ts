// Every interleaving of a small program: two processes, one key, one tag, at the granularity of the store's messages.
//
// The search goes from situation to situation and leaves each only once, however many interleavings lead to it. Three more
// things need not be tried in another order:
// - A frame arrives at once if all that its process can do is receive it, unless a load begins then: what ends earlier, and what
//   is heard of earlier, is held to more.
// - A call begins as late as it can, which again is stricter: the next event is one of the same process.
// - Loads end whenever they do: the checker asks only when they began.
import { check, type Violation } from "../checker.ts";
import { isChange } from "../operations.ts";
import { Accounts } from "./accounts.ts";
import { Numbering } from "./numbering.ts";
import { preparedWorld } from "./prepared.ts";
import { type ProcessState, ProcessStates } from "./process-states.ts";
import type { Name, Program } from "./programs.ts";
import { type Before, historyOf, type Leg, timelineOf, type Way } from "./record.ts";
import { type Account, type Both, type Event, keyOf, type Situation, withAt } from "./situation.ts";
import { StoreStates } from "./store-states.ts";

export interface Exploration {
  readonly situations: number;
  /** Those in which everything is over. */
  readonly endings: readonly Ending[];
  readonly violations: readonly Violation[];
  /** Of the first ending with a violation. */
  readonly timeline: readonly string[];
}

/** All that the checker sees of an interleaving. */
export interface Ending extends Account {
  /** What happened in each process, in which order loads began, and what was read in the end. */
  readonly story: string;
}

export interface ExploreOptions {
  /** Tries every event everywhere, and keeps all states and accounts apart, to see that nothing is left out otherwise. */
  readonly triesAll?: boolean;
  /** Called with the way to every ending. */
  readonly reached?: (way: Way) => Promise<void>;
}

/** The checker compares times only from a second on. */
const LIMIT_MS = 500;

class Explorer {
  readonly #states: ProcessStates;
  readonly #store: StoreStates;
  readonly #first: Situation;
  readonly #before: Before;

  private constructor(states: ProcessStates, store: StoreStates, first: Situation, before: Before) {
    this.#before = before;
    this.#states = states;
    this.#store = store;
    this.#first = first;
  }

  static async start(areMerged: boolean): Promise<Explorer> {
    const commands = new Numbering<readonly string[]>();
    const frames = new Numbering<string>();
    const world = await preparedWorld();
    const states = new ProcessStates(commands, frames, stories, areMerged);
    const store = new StoreStates(world, commands, frames);
    const both: Both<ProcessState> = [await states.first(0), await states.first(1)];
    world.close();
    const none: Both<readonly number[]> = [[], []];
    const first: Situation = {
      states: both,
      store: store.first,
      toServer: none,
      toClient: none,
      time: world.time.now,
      order: none,
      begun: "",
      seen: none,
      queued: none,
    };
    return new Explorer(states, store, first, { history: world.history, moment: world.moment });
  }

  async explore(program: Program, options: ExploreOptions): Promise<Exploration> {
    const visited = new Accounts(options.triesAll);
    const endings = new Accounts(options.triesAll);
    const found: Ending[] = [];
    const legs: Leg[] = [];
    /** For each leg and the beginning: what is left to try there. */
    const left: Event[][] = [await this.#eventsIn(this.#first, program, options)];
    for (;;) {
      const event = left.at(-1)?.pop();
      if (event === undefined) {
        left.pop();
        if (left.length === 0)
          return { situations: visited.size, endings: found, violations: [], timeline: [] };
        legs.pop();
        continue;
      }
      const known = this.#after(legs.at(-1)?.situation ?? this.#first, event, program);
      const situation = known instanceof Promise ? await known : known;
      if (!visited.add(keyOf(situation), situation)) continue;
      legs.push({ event, situation });
      const events = await this.#eventsIn(situation, program, options);
      left.push(events);
      if (events.length > 0 || !isOver(situation, program)) continue;
      const way = [...legs, ...(await this.#readAll(situation))];
      const { states, order, seen, queued, store, time } = (way.at(-1) as Leg).situation;
      const value = this.#store.liveValue(store, time);
      const story = `${states[0].story} ${states[1].story} ${order[0]};${order[1]} ${value}`;
      if (!endings.add(story, { seen, queued })) continue;
      found.push({ story, seen, queued });
      const ending: Way = { before: this.#before, first: this.#first, legs: way, reads: legs.length, value };
      await options.reached?.(ending);
      const violations = check(historyOf(ending));
      if (violations.length > 0)
        return { situations: visited.size, endings: found, violations, timeline: await timelineOf(ending) };
    }
  }

  /** What can happen next and has to be tried. */
  async #eventsIn(situation: Situation, program: Program, { triesAll }: ExploreOptions): Promise<Event[]> {
    const all = PROCESSES.flatMap((process) => possible(situation, program, process));
    if (triesAll) return orTicks(situation, program, all);
    const { begun } = situation;
    if (begun !== "") {
      const own = all.filter(
        (event) => event.process === Number(begun[0]) && (begun.length === 1 || event.do !== "serve"),
      );
      if (own.length > 0) return own;
      // Calls that need no message begin when nothing else is left.
      return all.every((event) => event.do === "begin") ? orTicks(situation, program, all) : [];
    }
    for (const process of PROCESSES) {
      const [event, ...others] = all.filter((each) => each.process === process && each.do !== "serve");
      if (event?.do !== "deliver" || others.length > 0) continue;
      const state = situation.states[process];
      const next = this.#states.delivered(state, situation.toClient[process][0] as number, situation.time);
      if ((next instanceof Promise ? await next : next).begunLoads === state.begunLoads) return [event];
    }
    return orTicks(situation, program, all);
  }

  #after(situation: Situation, event: Event, program: Program): Situation | Promise<Situation> {
    const { process } = event;
    const state = situation.states[process];
    const { time } = situation;
    switch (event.do) {
      case "serve":
        return this.#served(situation, process);
      case "begin": {
        const name = program[process][state.begunCalls] as Name;
        return then(this.#states.begun(state, name, time), (next) => began(situation, process, next));
      }
      case "deliver": {
        const [frame, ...frames] = situation.toClient[process] as readonly [number, ...number[]];
        const [, ...queued] = situation.queued[process];
        const delivered: Situation = {
          ...situation,
          toClient: withAt(situation.toClient, process, frames),
          queued: withAt(situation.queued, process, queued),
        };
        return then(this.#states.delivered(state, frame, time), (next) => moved(delivered, process, next));
      }
      case "load":
        return then(this.#states.loaded(state, time), (next) => moved(situation, process, next));
      case "tick": {
        const due = Math.max(time, state.standing.due);
        if (due - this.#first.time > LIMIT_MS)
          throw new Error("so much time passes that the checker would look at it");
        const later = { ...situation, time: due };
        return then(this.#states.ticked(state, due), (next) => moved(later, process, next));
      }
    }
  }

  #served(situation: Situation, process: 0 | 1): Situation {
    const [command, ...commands] = situation.toServer[process] as readonly [number, ...number[]];
    const { store, sent } = this.#store.serve(situation.store, process, command, situation.time);
    const { states, toClient, queued } = situation;
    const after = (to: 0 | 1): readonly number[] => [...toClient[to], ...sent[to]];
    const ended = (to: 0 | 1): readonly number[] =>
      sent[to].length === 0
        ? queued[to]
        : [...queued[to], ...sent[to].map(() => states[other(to)].endedChanges)];
    return {
      ...situation,
      store,
      toServer: withAt(situation.toServer, process, commands),
      toClient: [after(0), after(1)],
      queued: [ended(0), ended(1)],
      begun: "",
    };
  }

  /** When everything is over both processes read the entry once more, and everything is delivered. */
  async #readAll(situation: Situation): Promise<Leg[]> {
    const legs: Leg[] = [];
    let last = situation;
    const act = async (event: Event): Promise<void> => {
      // Programs that end with the read.
      const calls = last.states[event.process].begunCalls;
      const names: readonly Name[] = [...Array.from({ length: calls }, (): Name => "get"), "get"];
      last = await this.#after(last, event, [names, names]);
      legs.push({ event, situation: last });
    };
    for (const process of PROCESSES) await act({ do: "begin", process });
    const isQuiet = () => PROCESSES.every((process) => isSilent(last, process));
    while (!isQuiet()) {
      for (const process of PROCESSES) {
        while (last.toServer[process].length > 0) await act({ do: "serve", process });
        while (last.toClient[process].length > 0) await act({ do: "deliver", process });
      }
    }
    if (!last.states.every(({ standing }) => standing.isFree)) throw new Error("a read that does not end");
    return legs;
  }
}

const PROCESSES = [0, 1] as const;

const other = (process: 0 | 1): 0 | 1 => (process === 0 ? 1 : 0);

const then = <T, R>(value: T | Promise<T>, use: (value: T) => R): R | Promise<R> =>
  value instanceof Promise ? value.then(use) : use(value);

const isSilent = ({ toServer, toClient }: Situation, process: 0 | 1): boolean =>
  toServer[process].length === 0 && toClient[process].length === 0;

const isOver = (situation: Situation, program: Program): boolean =>
  PROCESSES.every((process) => {
    const { standing, begunCalls } = situation.states[process];
    const isAtRest = standing.isFree && !standing.isLoading;
    return isAtRest && begunCalls === program[process].length && isSilent(situation, process);
  });

/** What can happen to a process, or to its commands. */
function possible({ states, toServer, toClient }: Situation, program: Program, process: 0 | 1): Event[] {
  const { standing, begunCalls } = states[process];
  const { isFree, isLoading } = standing;
  const events: Event[] = [];
  if (isFree && begunCalls < program[process].length) events.push({ do: "begin", process });
  if (isLoading) events.push({ do: "load", process });
  if (toClient[process].length > 0) events.push({ do: "deliver", process });
  if (toServer[process].length > 0) events.push({ do: "serve", process });
  return events;
}

/** Time passes only when nothing else can happen. */
function orTicks(situation: Situation, program: Program, events: readonly Event[]): Event[] {
  if (events.length > 0 || isOver(situation, program)) return [...events];
  const [one, two] = situation.states;
  const due = Math.min(one.standing.due, two.standing.due);
  return PROCESSES.filter((process) => situation.states[process].standing.due === due).map((process) => ({
    do: "tick",
    process,
  }));
}

function began(situation: Situation, process: 0 | 1, next: ProcessState): Situation {
  const isSilentCall = next.sent.length === 0;
  const begun = isSilentCall ? (`${process} silently` as const) : (`${process}` as const);
  const isRead = next.latest !== undefined && !isChange(next.latest);
  const seen = isRead
    ? withAt(situation.seen, process, [...situation.seen[process], heardEnds(situation, process)])
    : situation.seen;
  return { ...moved({ ...situation, seen }, process, next), begun };
}

/** How many changes of the other process have ended, of which this one has certainly heard. */
const heardEnds = ({ queued, states }: Situation, process: 0 | 1): number =>
  queued[process][0] ?? states[other(process)].endedChanges;

/** No program has as many changes: so fewer of them give a larger number. */
const MANY = 100;

/** A process has gone on to its next state. */
function moved(situation: Situation, process: 0 | 1, next: ProcessState): Situation {
  const state = situation.states[process];
  const rest = situation.states[other(process)];
  const seen = [...situation.seen[process]];
  let order = situation.order;
  if (next.begunLoads > state.begunLoads) {
    const hasStale = next.marks.some((mark) => mark.what === "load begins" && mark.load.stale !== undefined);
    seen.push(MANY - rest.begunChanges, hasStale ? heardEnds(situation, process) : 0);
    order = withAt(order, process, [...order[process], rest.begunLoads]);
  }
  if (next.endedSets > state.endedSets) seen.push(MANY - rest.begunChanges);
  return {
    ...situation,
    states: withAt(situation.states, process, next),
    toServer:
      next.sent.length === 0
        ? situation.toServer
        : withAt(situation.toServer, process, [...situation.toServer[process], ...next.sent]),
    seen: withAt(situation.seen, process, seen),
    order,
    begun: "",
  };
}

/** Endings of different explorers can be compared. */
const stories = new Numbering<undefined>();

const explorers = new Map<boolean, Promise<Explorer>>();

/** What is known of the processes and the store is kept for the next program. */
export async function explore(program: Program, options: ExploreOptions = {}): Promise<Exploration> {
  const areMerged = options.triesAll !== true;
  const explorer = explorers.get(areMerged) ?? Explorer.start(areMerged);
  explorers.set(areMerged, explorer);
  return (await explorer).explore(program, options);
}
