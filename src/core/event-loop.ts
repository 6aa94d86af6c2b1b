// Scheduling on the event loop: work at the end of a turn, yielding a turn, and keeping the process alive.
import { systemClock } from "./clock.ts";

let runsAtEndOfTurn: (() => void)[] = [];

/**
 * Runs `run` when the current turn of the event loop is over, its promises included; all callbacks of a turn share one
 * tick. `run` must not throw.
 */
export function atEndOfTurn(run: () => void): void {
  if (runsAtEndOfTurn.push(run) === 1) process.nextTick(runAll);
}

export const endOfTurn = (): Promise<void> => new Promise(atEndOfTurn);

function runAll(): void {
  const runs = runsAtEndOfTurn;
  runsAtEndOfTurn = [];
  for (const run of runs) run();
}

const immediate = setImmediate;

/** Yields to everything else in the process. */
export const nextTurn = (): Promise<undefined> => new Promise((resolve) => immediate(resolve, undefined));

// One timer keeps the process alive for all pending replies and is released shortly after the last of them: ref() and
// unref() of a socket or timer per reply are expensive.
const HOLD_MS = 50;

let holders = 0;
let isHeld = false;

/** Keeps the process alive; call `releaseProcess` once for it. */
export function holdProcess(): void {
  holders++;
  if (isHeld) return;
  isHeld = true;
  hold();
}

export function releaseProcess(): void {
  holders--;
}

function hold(): void {
  const timer = systemClock.after(HOLD_MS, () => {
    if (holders > 0) hold();
    else isHeld = false;
  });
  timer.hold?.(true);
}

/** The hold of one object that waits from time to time. */
export class ProcessHold {
  #isHeld = false;

  set(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) holdProcess();
    else releaseProcess();
  }
}
