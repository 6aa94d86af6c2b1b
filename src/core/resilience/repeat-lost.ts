// What may be executed twice, such as a read, is sent again when its connection is lost: to callers that is no failure.
import type { Clock } from "../clock.ts";
import { nextTurn } from "../event-loop.ts";
import { toError } from "../events.ts";
import { isLoss } from "./store-failure.ts";

/** A client whose connections are lost at once, again and again, must not keep its callers busy. */
const MOST_REPEATS = 3;

/** `work` is repeated while connections are lost, for at most `limitMs`; it gets the time by which it has to end. */
export async function repeatWhileLost<T>(
  clock: Clock,
  limitMs: number,
  work: (due: number) => Promise<T>,
): Promise<T> {
  const due = clock.now() + limitMs;
  for (let repeats = 0; ; repeats++) {
    try {
      return await work(due);
    } catch (thrown) {
      if (!isLoss(toError(thrown)) || repeats === MOST_REPEATS || clock.now() >= due) throw thrown;
      // Other connections may be lost with it, and are noticed first.
      await nextTurn();
    }
  }
}
