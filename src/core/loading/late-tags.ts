// Tags named by the load itself: until it ends, nobody can tell whether another process has invalidated them. So callers
// that joined the load check at its end whether its value is new enough for them.
import { toError } from "../events.ts";
import type { Ticket } from "../namespace.ts";
import type { Outcome, Verdict } from "./waiting-call.ts";

/** Whether a load's result was stored; `unknown`: the store failed. */
export type CommitOutcome = "stored" | "refused" | "unknown" | "skipped";

/** A finished load that named tags itself. */
export interface LateTagged {
  readonly tags: readonly string[];
  /** The moments in the change log at which it was called and had ended. */
  readonly begunAt: number;
  readonly endedAt: number;
  readonly commit: CommitOutcome;
  /** One of the tags was invalidated by this process meanwhile. */
  readonly isTouched: boolean;
  readonly ticket: Ticket | undefined;
  readonly signal: AbortSignal;
  report(error: Error): void;
}

/** Storing the result already asks the store about the tags; otherwise it is asked only if a joined caller needs to know. */
export function newEnoughCheck(load: LateTagged): NonNullable<Outcome["isNewEnough"]> {
  const { begunAt, endedAt, commit, isTouched } = load;
  let asked: Promise<Verdict> | undefined;
  return async (calledAt) => {
    if (calledAt < begunAt) return "new enough";
    if (calledAt >= endedAt || isTouched) return "too old";
    if (commit === "stored") return "new enough";
    asked ??= commit === "unknown" ? unknown(load) : ask(load);
    return asked;
  };
}

async function ask(load: LateTagged): Promise<Verdict> {
  try {
    const areCurrent = (await load.ticket?.areCurrent?.(load.tags)) ?? true;
    return areCurrent ? "new enough" : "too old";
  } catch (error) {
    if (!load.signal.aborted) load.report(toError(error));
    return unknown(load);
  }
}

/** A disconnected cache does not load again just because it is unsure. */
async function unknown({ signal }: LateTagged): Promise<Verdict> {
  return signal.aborted ? "new enough" : "unknown";
}
