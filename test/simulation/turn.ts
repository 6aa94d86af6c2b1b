// Turns of the simulated event loop: what an event has caused runs to its end, without a turn of the real one.
//
// The sources get `nextTick` and `setImmediate` of this module in place of Node's when the simulation is bundled. A turn of the
// real loop polls for input and output that a simulation does not have, which takes longer than most steps do.

const immediates: (() => void)[] = [];
/** How many callbacks of the sources were queued for the end of a turn. */
let ticks = 0;

export function nextTick<A extends readonly unknown[]>(run: (...args: A) => void, ...args: A): void {
  ticks++;
  process.nextTick(run, ...args);
}

export function setImmediate<A extends readonly unknown[]>(run: (...args: A) => void, ...args: A): void {
  immediates.push(() => run(...args));
}

/** `queueMicrotask` creates an asynchronous resource for each callback. */
const REACHED = Promise.resolve();

/** How many of them had been when it was last looked whether anything is left. */
let seen = 0;

/** Resolves when nothing is left to run: no promise, no tick, no immediate. */
export const settled = (): Promise<void> => new Promise(settle);

/**
 * Node runs ticks only when no promise is left, and promises only when no tick is left. So if no tick was queued since the last
 * look, everything else has run.
 */
function settle(resolve: () => void): void {
  const look = (): void => {
    const [immediate] = immediates;
    if (ticks !== seen) seen = ticks;
    else if (immediate === undefined) {
      resolve();
      return;
    } else {
      immediates.shift();
      immediate();
    }
    // From a promise: what this tick and those before it have left to promises comes first.
    void REACHED.then(lookAgain);
  };
  const lookAgain = (): void => process.nextTick(look);
  lookAgain();
}

/** A turn of the real event loop, so that other work of the thread is not kept waiting. */
export const realTurn = (): Promise<void> => new Promise((resolve) => void globalThis.setImmediate(resolve));
