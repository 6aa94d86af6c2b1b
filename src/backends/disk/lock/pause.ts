// Waiting a little for another process, which nothing tells of.
import type { Clock } from "../../../core/clock.ts";

/** Keeps the process alive meanwhile: somebody waits for what comes after. */
export function pause(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => clock.after(delayMs, resolve).hold?.(true));
}

const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** For a process that exits: nothing else has a turn any more. */
export function pauseThread(delayMs: number): void {
  Atomics.wait(neverWoken, 0, 0, delayMs);
}
