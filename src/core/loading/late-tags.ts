// Tags that only the load could name: while it runs nobody can tell that they were invalidated elsewhere. So those who have
// joined it find out when it has ended whether its value is new enough for them.
import { toError } from "../events.ts";
import type { Ticket } from "../namespace.ts";
import type { Outcome, Verdict } from "./waiting-call.ts";

/** What became of a load's result; `unknown`: the store has failed. */
export type Fate = "stored" | "refused" | "unknown" | "unwanted";

/** A load that has named tags itself. */
export interface LateTagged {
  readonly tags: readonly string[];
  /** The moments in the log of changes at which it was called, and had ended. */
  readonly begunAt: number;
  readonly endedAt: number;
  readonly fate: Fate;
  /** One of the tags was invalidated in this process meanwhile. */
  readonly isTouched: boolean;
  readonly ticket: Ticket | undefined;
  readonly signal: AbortSignal;
  report(error: Error): void;
}

/** Before its result is stored the store is asked about the tags, later only if somebody wants to know. */
export function suitsAfter(load: LateTagged): NonNullable<Outcome["suits"]> {
  const { begunAt, endedAt, fate, isTouched } = load;
  let asked: Promise<Verdict> | undefined;
  return async (calledAt) => {
    if (calledAt < begunAt) return "new enough";
    if (calledAt >= endedAt || isTouched) return "too old";
    if (fate === "stored") return "new enough";
    asked ??= fate === "unknown" ? notTold(load) : ask(load);
    return asked;
  };
}

async function ask(load: LateTagged): Promise<Verdict> {
  try {
    const areCurrent = (await load.ticket?.areCurrent?.(load.tags)) ?? true;
    return areCurrent ? "new enough" : "too old";
  } catch (error) {
    if (!load.signal.aborted) load.report(toError(error));
    return notTold(load);
  }
}

/** Nothing is loaded again on a mere doubt when the cache is disconnected. */
async function notTold({ signal }: LateTagged): Promise<Verdict> {
  return signal.aborted ? "new enough" : "not told";
}
