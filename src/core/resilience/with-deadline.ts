// A deadline around any promise: one timer, cleared when the promise settles.
import type { Clock, Timer } from "../clock.ts";

/** How long after a deadline that did not apply it is looked at again. */
export const SUSPENDED_MS = 25;

export interface DeadlineOptions {
  /** The process must not end meanwhile, because its user waits for the outcome. */
  readonly holdsProcess?: boolean;
  /** Whether the deadline does not apply for now. */
  readonly isSuspended?: () => boolean;
}

/**
 * Settles as `work` does, or after `limitMs` as `late` does: with its result or its error.
 * A later outcome of `work` is ignored, a rejection included; the caller decides what an unknown outcome means.
 */
export function withDeadline<T, L = never>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  late: () => L,
  { holdsProcess = false, isSuspended }: DeadlineOptions = {},
): Promise<T | L> {
  if (limitMs === Number.POSITIVE_INFINITY) return work;
  return new Promise<T | L>((resolve, reject) => {
    let timer: Timer | undefined;
    const end = (): void => {
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    };
    const arm = (delayMs: number, expire: () => void): void => {
      timer = clock.after(delayMs, expire);
      if (holdsProcess) timer.hold?.(true);
    };
    let suspendedMs = 0;
    const judge = (): void => {
      if (timer === undefined) return;
      if (isSuspended?.() === true) {
        suspendedMs += SUSPENDED_MS;
        arm(SUSPENDED_MS, later);
      } else if (suspendedMs > 0) {
        // As long again, for what had to wait to be asked.
        arm(Math.min(suspendedMs, limitMs), later);
        suspendedMs = 0;
      } else end();
    };
    // After a blocked event loop, what has already arrived is processed first.
    const later = (): void => void setImmediate(judge);
    arm(limitMs, isSuspended === undefined ? end : later);
    const settled = (): void => {
      timer?.cancel();
      timer = undefined;
    };
    work.then(
      (value) => {
        settled();
        resolve(value);
      },
      (error: unknown) => {
        settled();
        reject(error);
      },
    );
  });
}
