// ClockPro (Jiang, Chen and Zhang, USENIX ATC 2005): LIRS with use bits instead of moves, which adapts the space for cold keys.
// The clock is a list that begins at its hot hand: what that hand passes becomes the newest.
import { keysOf, Lists } from "./lists.mjs";

const ABSENT = 0;
const HOT = 1;
const COLD = 2;
/** Without an entry, in its test period. */
const GONE = 3;

const FEWEST_COLD = 0.01;
/** The number of keys without an entry that are remembered, per entry. */
const REMEMBERED = 2;

export function clockPro(trace, capacity) {
  const keys = keysOf(trace);
  const clock = new Lists(keys, 1);
  /** Cold entries and keys without an entry, in the order of the clock. */
  const queues = new Lists(keys, 2);
  const [IN, OUT] = [0, 1];
  const states = new Uint8Array(keys);
  const isUsed = new Uint8Array(keys);
  const isTested = new Uint8Array(keys);
  const fewest = Math.max(1, Math.floor(capacity * FEWEST_COLD));
  let coldTarget = fewest;
  let hot = 0;
  let hits = 0;

  const warm = () => {
    coldTarget = Math.min(capacity - 1, coldTarget + 1);
  };
  const cool = () => {
    coldTarget = Math.max(fewest, coldTarget - 1);
  };

  function forget(key) {
    clock.remove(key);
    queues.remove(key);
    states[key] = ABSENT;
  }

  function becomeHot(key) {
    states[key] = HOT;
    isUsed[key] = 0;
    queues.remove(key);
    clock.push(0, key);
    hot++;
    while (hot > capacity - coldTarget) demote();
  }

  /** The hot hand: ends the test periods that it passes, until it finds a hot entry that was not used. */
  function demote() {
    for (;;) {
      const key = clock.oldest[0];
      if (states[key] === GONE) {
        forget(key);
        cool();
        continue;
      }
      clock.push(0, key);
      if (states[key] === COLD) {
        if (isTested[key] === 1) cool();
        isTested[key] = 0;
        queues.push(IN, key);
      } else if (isUsed[key] === 1) isUsed[key] = 0;
      else {
        states[key] = COLD;
        isTested[key] = 0;
        queues.push(IN, key);
        hot--;
        return;
      }
    }
  }

  /** The cold hand: moves until one entry has been evicted. */
  function evict() {
    for (;;) {
      if (queues.sizes[IN] === 0) demote();
      const key = queues.oldest[IN];
      if (isUsed[key] === 1) {
        isUsed[key] = 0;
        if (isTested[key] === 1) {
          warm();
          becomeHot(key);
          continue;
        }
        isTested[key] = 1;
        clock.push(0, key);
        queues.push(IN, key);
        continue;
      }
      if (isTested[key] === 0) return forget(key);
      states[key] = GONE;
      queues.push(OUT, key);
      // The test hand.
      if (queues.sizes[OUT] > capacity * REMEMBERED) {
        forget(queues.oldest[OUT]);
        cool();
      }
      return;
    }
  }

  for (const key of trace) {
    if (states[key] === HOT || states[key] === COLD) {
      hits++;
      isUsed[key] = 1;
      continue;
    }
    if (hot + queues.sizes[IN] >= capacity) evict();
    const isReturning = states[key] === GONE;
    if (isReturning) warm();
    if (isReturning || hot < capacity - coldTarget) becomeHot(key);
    else {
      states[key] = COLD;
      isUsed[key] = 0;
      isTested[key] = 1;
      clock.push(0, key);
      queues.push(IN, key);
    }
  }
  return hits;
}
