// LRU: the baseline for all comparisons.
import { keysOf, Lists } from "./lists.mjs";

export function lru(trace, capacity) {
  const lists = new Lists(keysOf(trace), 1);
  let hits = 0;
  for (const key of trace) {
    if (lists.of(key) === 0) hits++;
    else if (lists.sizes[0] >= capacity) lists.remove(lists.oldest[0]);
    lists.push(0, key);
  }
  return hits;
}
