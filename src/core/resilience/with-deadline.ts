// A deadline around any promise: one timer, cleared when the promise settles.
import type { Clock } from "../clock.ts";

/**
 * Settles as `work` does, or after `limitMs` as `late` does: with its result or its error.
 * A later outcome of `work` is ignored, a rejection included; the caller decides what an unknown outcome means.
 * `holdsProcess`: the process must not end meanwhile, because its user waits for the outcome.
 */
export function withDeadline<T, L = never>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  late: () => L,
  holdsProcess = false,
): Promise<T | L> {
  if (limitMs === Number.POSITIVE_INFINITY) return work;
  return new Promise<T | L>((resolve, reject) => {
    const timer = clock.after(limitMs, () => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    });
    if (holdsProcess) timer.hold?.(true);
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
