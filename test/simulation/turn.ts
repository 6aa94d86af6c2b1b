// Turns of the simulated event loop: what an event has caused runs to its end, without a turn of the real one.
//
// The sources get `nextTick` and `setImmediate` of this module in place of Node's when the simulation is bundled. A turn of the
// real loop polls for input and output that a simulation does not have, which takes longer than most steps do.

let immediates: (() => void)[] = [];
/** How many callbacks of the sources were queued for the end of a turn. */
let ticks = 0;

export function nextTick<A extends readonly unknown[]>(run: (...args: A) => void, ...args: A): void {
  ticks++;
  process.nextTick(run, ...args);
}

export function setImmediate<A extends readonly unknown[]>(run: (...args: A) => void, ...args: A): void {
  immediates.push(() => run(...args));
}

/** Resolves when nothing is left to run: no promise, no tick, no immediate. */
export const settled = (): Promise<void> => new Promise(settle);

function settle(resolve: () => void): void {
  let seen = -1;
  // Node runs a tick after all promises, so between two of these without another tick there was nothing left but promises.
  const look = (): void => {
    if (seen !== ticks) seen = ticks;
    else if (immediates.length === 0) {
      resolve();
      return;
    } else {
      seen = -1;
      (immediates.shift() as () => void)();
    }
    process.nextTick(look);
  };
  process.nextTick(look);
}

/** A turn of the real event loop, so that other work of the thread is not kept waiting. */
export const realTurn = (): Promise<void> =>
  new Promise((resolve) => void globalThis.setImmediate(resolve));
