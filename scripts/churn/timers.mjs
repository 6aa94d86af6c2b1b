// Counts the pending timers of this process: Node lists only those that keep it alive, and a store's do not.
// Must be imported before the code that sets them.

const { setTimeout: set, clearTimeout: clear } = globalThis;
/** @type {Set<NodeJS.Timeout>} */
const waiting = new Set();

export const waitingTimers = () => waiting.size;

/**
 * @param {(...args: unknown[]) => void} run
 * @param {number} [delayMs]
 * @param {unknown[]} args
 */
function setCounted(run, delayMs, ...args) {
  const timer = set(() => {
    waiting.delete(timer);
    run(...args);
  }, delayMs);
  waiting.add(timer);
  return timer;
}

/** @param {NodeJS.Timeout} timer */
function clearCounted(timer) {
  waiting.delete(timer);
  clear(timer);
}

Object.assign(globalThis, { setTimeout: setCounted, clearTimeout: clearCounted });
