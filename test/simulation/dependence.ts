// Which events of an exploration may change places without a difference, and which may not.
import type { Call, History } from "./history.ts";
import { isChange } from "./operations.ts";
import type { Step } from "./steps.ts";

/** Something that can happen next. The same thread's next event is the same event in every equivalent interleaving. */
export interface Event {
  readonly thread: string;
  readonly process: number;
  readonly kind: "begin" | "local" | "serve";
  readonly step: Step;
  /** Records of the store. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** What an event has done that others may have to come before or after. */
export interface Effects {
  /** A set of marks. */
  readonly marks: number;
  /** The processes that something was sent to. */
  readonly sentTo: readonly number[];
}

export interface PerformedEvent extends Event, Effects {}

const CHANGE_BEGINS = 1;
const CHANGE_ENDS = 2;
const READ_BEGINS = 4;
const LOAD_BEGINS = 8;
const LOAD_ENDS = 16;

/** The pairs whose order the checker looks at: whether a change began before a value was determined, and so on. */
const ORDERED: readonly (readonly [number, number])[] = [
  [CHANGE_BEGINS, CHANGE_ENDS | LOAD_BEGINS],
  [CHANGE_ENDS, READ_BEGINS | LOAD_BEGINS],
  [LOAD_BEGINS, LOAD_BEGINS | LOAD_ENDS],
];

/** Counts of a history, from which the marks of an event follow. */
export class HistoryState {
  readonly #calls: number;
  readonly #endedChanges: number;
  readonly #loads: number;
  readonly #endedLoads: number;

  constructor({ calls, loads }: History) {
    this.#calls = calls.length;
    this.#endedChanges = calls.filter(
      ({ operation, end }) => isChange(operation) && end !== undefined,
    ).length;
    this.#loads = loads.length;
    this.#endedLoads = loads.filter(({ end }) => end !== undefined).length;
  }

  /** What has happened since. */
  marksOf(history: History): number {
    const now = new HistoryState(history);
    let marks = 0;
    for (const { operation } of history.calls.slice(this.#calls) as Call[])
      marks |= isChange(operation) ? CHANGE_BEGINS : READ_BEGINS;
    if (now.#endedChanges > this.#endedChanges) marks |= CHANGE_ENDS;
    if (now.#loads > this.#loads) marks |= LOAD_BEGINS;
    if (now.#endedLoads > this.#endedLoads) marks |= LOAD_ENDS;
    return marks;
  }
}

/** Whether the order of two events can matter, to the world or to the checker. */
export function depend(one: PerformedEvent, other: PerformedEvent): boolean {
  if (one.kind === "serve" && other.kind === "serve") {
    if (one.process === other.process || touch(one.writes, other) || touch(other.writes, one)) return true;
    return one.sentTo.some((process) => other.sentTo.includes(process));
  }
  if (one.kind === "serve" || other.kind === "serve") return false;
  if (one.process === other.process) return true;
  return ORDERED.some(
    ([some, others]) =>
      ((one.marks & some) !== 0 && (other.marks & others) !== 0) ||
      ((other.marks & some) !== 0 && (one.marks & others) !== 0),
  );
}

const touch = (keys: readonly string[], { reads, writes }: Event): boolean =>
  keys.some((key) => reads.includes(key) || writes.includes(key));

/** Which records a command reads and writes. */
export function accesses([command, ...names]: readonly string[]): Pick<Event, "reads" | "writes"> {
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
