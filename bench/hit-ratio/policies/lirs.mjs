// LIRS (Jiang and Zhang, SIGMETRICS 2002): ranks keys by the distance between their last two uses; 1 % of the space is for the others.
import { keysOf, Lists } from "./lists.mjs";

const COLD_SHARE = 0.01;
/** The number of keys without an entry that are remembered, per entry. */
const REMEMBERED = 2;

const ABSENT = 0;
const LOW = 1;
const HIGH = 2;
const GONE = 3;

export function lirs(trace, capacity) {
  const keys = keysOf(trace);
  const stack = new Lists(keys, 1);
  const queue = new Lists(keys, 1);
  /** Stack keys without an entry, by when they lost it. */
  const gone = new Lists(keys, 1);
  const states = new Uint8Array(keys);
  const mostLow = Math.max(1, Math.min(capacity - 1, Math.floor(capacity * (1 - COLD_SHARE))));
  let low = 0;
  let high = 0;
  let hits = 0;

  /** The oldest of the stack is always of the low kind. */
  function prune() {
    for (;;) {
      const key = stack.oldest[0];
      if (key === -1 || states[key] === LOW) return;
      stack.remove(key);
      if (states[key] === GONE) forget(key);
    }
  }

  function forget(key) {
    states[key] = ABSENT;
    gone.remove(key);
    stack.remove(key);
  }

  function demote() {
    const key = stack.oldest[0];
    stack.remove(key);
    states[key] = HIGH;
    low--;
    high++;
    queue.push(0, key);
    prune();
  }

  function evict() {
    const key = queue.oldest[0];
    queue.remove(key);
    high--;
    if (stack.of(key) === 0) {
      states[key] = GONE;
      gone.push(0, key);
      if (gone.sizes[0] > capacity * REMEMBERED) {
        forget(gone.oldest[0]);
        prune();
      }
    } else states[key] = ABSENT;
  }

  function promote(key) {
    states[key] = LOW;
    low++;
    if (low > mostLow) demote();
  }

  for (const key of trace) {
    const state = states[key];
    if (state === LOW) {
      hits++;
      stack.push(0, key);
      prune();
    } else if (state === HIGH) {
      hits++;
      const isInStack = stack.of(key) === 0;
      stack.push(0, key);
      if (isInStack) {
        queue.remove(key);
        high--;
        promote(key);
      } else queue.push(0, key);
    } else {
      const wasGone = state === GONE;
      if (wasGone) gone.remove(key);
      if (low + high >= capacity) {
        if (high === 0) demote();
        evict();
      }
      // Making room may have pruned it.
      stack.push(0, key);
      if (wasGone || (low < mostLow && high === 0)) promote(key);
      else {
        states[key] = HIGH;
        high++;
        queue.push(0, key);
      }
    }
  }
  return hits;
}
