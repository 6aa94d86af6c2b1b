// An interleaving that was found, as a history for the checker, and once more in one world.
import { type Call, History, type LoadRun, type Moment } from "../history.ts";
import { deliverAll } from "../scheduler.ts";
import { settled } from "../turn.ts";
import type { World } from "../world.ts";
import type { Mark } from "./live-process.ts";
import { preparedWorld } from "./prepared.ts";
import { OPERATIONS } from "./programs.ts";
import type { Event, Situation } from "./situation.ts";

/** An event, and the situation that it led to. */
export interface Leg {
  readonly event: Event;
  readonly situation: Situation;
}

/** What had happened before the exploration began. */
export interface Before {
  readonly history: History;
  readonly moment: Moment;
}

export interface Way {
  readonly before: Before;
  readonly first: Situation;
  readonly legs: readonly Leg[];
  /** Which leg is the first of those that read everything when all is over. */
  readonly reads: number;
  /** What the store holds in the end. */
  readonly value: string | undefined;
}

export function historyOf({ before, first, legs, reads, value }: Way): History {
  const history = new History();
  let { tick, sequence } = before.moment;
  let last = first;
  const moment = (): Moment => ({ tick: ++tick, time: last.time - first.time, sequence });
  /** At which command each frame on its way was sent. */
  const sentAt: [number[], number[]] = [[], []];
  const write = (mark: Mark, process: 0 | 1): void => {
    const heard = sentAt[process][0] === undefined ? Number.POSITIVE_INFINITY : sentAt[process][0] - 1;
    switch (mark.what) {
      case "call begins":
        history.calls.push({ ...mark.call, start: moment(), heard });
        break;
      case "call ends": {
        const call = byId(history.calls, mark.id);
        call.end = moment();
        call.value = mark.value;
        break;
      }
      case "load begins":
        history.loads.push({
          ...mark.load,
          call: byId(history.calls, mark.load.call.id),
          start: moment(),
          heard,
        });
        break;
      case "load ends": {
        const load = byId(history.loads, mark.id);
        load.end = moment();
        load.outcome = "value";
      }
    }
  };
  history.calls.push(...before.history.calls);
  for (const [at, { event, situation }] of legs.entries()) {
    const { process } = event;
    if (at === reads) history.healed = moment();
    if (event.do === "serve") {
      sequence++;
      for (const to of [0, 1] as const)
        while (sentAt[to].length < situation.toClient[to].length) sentAt[to].push(sequence);
    }
    if (event.do === "deliver") sentAt[process].shift();
    last = situation;
    if (event.do !== "serve") for (const mark of situation.states[process].marks) write(mark, process);
  }
  if (value !== undefined) history.calls.push(observed(moment(), moment(), value));
  history.end = moment();
  return history;
}

const observed = (start: Moment, end: Moment, value: string): Call => ({
  id: "observed",
  process: -1,
  operation: OPERATIONS.get,
  start,
  heard: Number.POSITIVE_INFINITY,
  isReachable: true,
  isUp: true,
  frozenMs: 0,
  end,
  value,
  error: undefined,
});

const byId = <T extends Call | LoadRun>(list: readonly T[], id: string): T =>
  list.find((each) => each.id === id) as T;

export async function timelineOf(way: Way): Promise<readonly string[]> {
  const timeline: string[] = [];
  (await replayed(way, timeline)).close();
  return timeline;
}

/** The same events in one world with both processes. */
export async function replayed({ legs, reads }: Way, timeline?: string[]): Promise<World> {
  const world = await preparedWorld(timeline);
  for (const { event, situation } of legs.slice(0, reads)) {
    perform(world, event, situation);
    await settled();
  }
  world.history.healed = world.moment;
  for (const { index } of world.processes) world.readAll(index);
  await deliverAll(world, true);
  world.readStore();
  world.history.end = world.moment;
  return world;
}

function perform(world: World, { do: what, process }: Event, { states }: Situation): void {
  switch (what) {
    case "begin": {
      const operation = states[process].latest ?? OPERATIONS.get;
      world.apply({ do: "call", process, operation, callers: 1 });
      break;
    }
    case "serve":
    case "deliver":
      world.apply({ do: what, process, rank: 0, count: 1 });
      break;
    case "load":
      world.apply({
        do: "load",
        rank: world.calls.endable().findIndex(({ run }) => run.process === process),
      });
      break;
    case "tick": {
      const { clock } = world.processes[process] as World["processes"][number];
      world.note(() => `the next timer of p${process} fires`);
      world.time.tick(clock);
    }
  }
}

/** What the two histories do not have in common; undefined if they are the same. */
export function differenceOf(one: History, other: History): string | undefined {
  const [a, b] = [spelled(one), spelled(other)];
  const at = a.findIndex((line, index) => line !== b[index]);
  if (at >= 0) return `${a[at]}, but ${b[at]}`;
  return b.length > a.length ? `nothing, but ${b[a.length]}` : undefined;
}

/** What happened, in order, with what each process had heard of. Of the last reads only what they return counts. */
function spelled({ calls, loads, healed }: History): string[] {
  const events: { readonly tick: number; readonly text: string }[] = [];
  const add = (at: Moment | undefined, text: string, heard?: number): void => {
    if (at === undefined) return;
    const isLast = healed !== undefined && at.tick > healed.tick;
    if (isLast) events.push({ tick: healed.tick, text });
    else events.push({ tick: at.tick, text: `${text} at ${at.time} ${at.sequence} ${heard}` });
  };
  for (const { id, operation, start, heard, end, value } of calls) {
    add(start, `${id} ${operation.do} begins`, heard);
    add(end, `${id} ends: ${value}`);
  }
  for (const { id, call, start, heard, end, stale } of loads) {
    add(start, `${id} begins for ${call.id}, with ${stale}`, heard);
    add(end, `${id} ends`);
  }
  return events
    .sort((one, other) => one.tick - other.tick || (one.text < other.text ? -1 : 1))
    .map(({ text }) => text);
}
