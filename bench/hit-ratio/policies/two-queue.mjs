// 2Q (Johnson and Shasha, VLDB 1994): a FIFO for new keys, a list of keys evicted from it, and an LRU for those that return.
import { keysOf, Lists } from "./lists.mjs";

const IN = 0;
const OUT = 1;
const MAIN = 2;
const IN_SHARE = 0.2;
const OUT_SHARE = 0.5;

export function twoQueue(trace, capacity) {
  const lists = new Lists(keysOf(trace), 3);
  const { sizes, oldest } = lists;
  const mostIn = Math.max(1, Math.floor(capacity * IN_SHARE));
  const mostOut = Math.max(1, Math.floor(capacity * OUT_SHARE));
  let hits = 0;

  function makeRoom() {
    if (sizes[IN] + sizes[MAIN] < capacity) return;
    if (sizes[IN] <= mostIn && sizes[MAIN] > 0) return lists.remove(oldest[MAIN]);
    lists.push(OUT, oldest[IN]);
    if (sizes[OUT] > mostOut) lists.remove(oldest[OUT]);
  }

  for (const key of trace) {
    const list = lists.of(key);
    if (list === IN || list === MAIN) {
      hits++;
      if (list === MAIN) lists.push(MAIN, key);
      continue;
    }
    if (list === OUT) lists.remove(key);
    makeRoom();
    lists.push(list === OUT ? MAIN : IN, key);
  }
  return hits;
}
