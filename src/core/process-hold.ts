// Keeps the process alive while somebody waits for an answer. To hold and let go of a socket or timer for every answer is
// dear; one timer stands for all of them, and is let go of a moment after the last.
import { systemClock } from "./clock.ts";

const MOMENT_MS = 50;

let waiting = 0;
let isHeld = false;

/** Call `releaseProcess` once for it. */
export function holdProcess(): void {
  waiting++;
  if (isHeld) return;
  isHeld = true;
  hold();
}

export function releaseProcess(): void {
  waiting--;
}

function hold(): void {
  const moment = systemClock.after(MOMENT_MS, () => {
    if (waiting > 0) hold();
    else isHeld = false;
  });
  moment.hold?.(true);
}

/** One who waits now and then. */
export class ProcessHold {
  #isHeld = false;

  set(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) holdProcess();
    else releaseProcess();
  }
}
