// Finds the places where an interleaving must be left in order to see all that are not equivalent to it.
//
// Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson and Sagonas, 2014): two events that depend on
// each other, with nothing between them that orders them, have to be seen in the other order too.
import { depend, type PerformedEvent } from "./dependence.ts";

/** An event in its place in an interleaving. */
export interface PlacedEvent extends PerformedEvent {
  /** The place of the event that sent what this one serves or delivers; undefined: it is older than the interleaving. */
  readonly sentBy: number | undefined;
  /** How often time has passed before it, which happens only when nothing else can. */
  readonly epoch: number;
}

/** `events[at]` could be replaced by one of `threads`. */
export interface Race {
  readonly at: number;
  readonly threads: readonly string[];
}

export function racesOf(events: readonly PlacedEvent[]): Race[] {
  /** The places of what came before each event and had to, itself included. */
  const before: bigint[] = [];
  const races: Race[] = [];
  for (const [place, event] of events.entries()) {
    let ordered = 1n << BigInt(place);
    const racing: number[] = [];
    for (let earlier = place - 1; earlier >= 0; earlier--) {
      if (ordered & (1n << BigInt(earlier))) continue;
      const other = events[earlier] as PlacedEvent;
      const isCause = event.sentBy === earlier || other.epoch !== event.epoch;
      if (!isCause && other.thread !== event.thread && !depend(other, event)) continue;
      if (!isCause && other.thread !== event.thread) racing.push(earlier);
      ordered |= before[earlier] as bigint;
    }
    before.push(ordered);
    for (const at of racing) races.push({ at, threads: firstWithout(events, before, at, place) });
  }
  return races;
}

/** The threads that could go first if `place` came before `at`. */
function firstWithout(
  events: readonly PlacedEvent[],
  before: readonly bigint[],
  at: number,
  place: number,
): readonly string[] {
  const threads: string[] = [];
  let kept = 0n;
  for (let next = at + 1; next <= place; next++) {
    const causes = before[next] as bigint;
    if (next !== place && causes & (1n << BigInt(at))) continue;
    const self = 1n << BigInt(next);
    if ((causes & kept) === 0n) threads.push((events[next] as PlacedEvent).thread);
    kept |= self;
  }
  return threads;
}
