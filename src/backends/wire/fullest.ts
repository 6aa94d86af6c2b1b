// How full a store of several servers is: as full as the fullest, whose keys are the first to leave or to be refused.
import { ConnectionError } from "../../core/errors.ts";

/** Of those servers that say so; undefined where none does. Rejects when there are none, or none answers. */
export async function highestUsage(
  asked: readonly Promise<number | undefined>[],
): Promise<number | undefined> {
  if (asked.length === 0) {
    throw new ConnectionError("the store is not connected", { code: "DISCONNECTED" });
  }
  const answers = await Promise.allSettled(asked);
  const told = answers.filter((answer) => answer.status === "fulfilled").map(({ value }) => value);
  if (told.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
  const known = told.filter((fill) => fill !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** A share of a bound, 0 to 1; undefined where there is no bound, or it is not said. */
export function shareOf(used: number, bound: number): number | undefined {
  return used >= 0 && bound > 0 ? Math.min(1, used / bound) : undefined;
}
