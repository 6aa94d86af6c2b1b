// Concurrent callers of a store, each of which calls again as soon as it has its answer.
import { timeChunks } from "../timing.mjs";

const FILLING = 64;
/** At one round trip at a time, the compiler takes this long to have seen enough of any library. */
const WARM_UP_MS = 2_000;

/** Calls `call(at)` for every position below `count`, a limited number at a time. */
export async function forEachInFlight(count, call, inFlight = FILLING) {
  let next = 0;
  const caller = async () => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
}

/** Stores every key of a workload. */
export function fillInFlight(driver, { keys, values }, tagsOf) {
  return forEachInFlight(keys.length, (at) => driver.set(keys[at], values[at], tagsOf?.(at)));
}

/**
 * Microseconds per operation of `run(from, to)`, which works on positions of a sequence. A round trip is so much longer
 * than a read of memory that a chunk holds only one operation in `oneIn`.
 */
export async function timeFewer(length, oneIn, run) {
  const fewer = (from, to) => run(from, from + (to - from) / oneIn);
  const { figure, cpu } = await timeChunks(length, fewer, WARM_UP_MS);
  return { figure: (figure * oneIn) / 1e3, cpu: (cpu * oneIn) / 1e3 };
}
