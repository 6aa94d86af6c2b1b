// Waits on a clock.
import type { Clock } from "../core/clock.ts";

/** Resolves after `ms`, or as soon as one of the signals aborts. */
export function pause(clock: Clock, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, done);
    function done(): void {
      timer.cancel();
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    }
    for (const signal of signals) signal.addEventListener("abort", done, { once: true });
    if (signals.some(({ aborted }) => aborted)) done();
  });
}
