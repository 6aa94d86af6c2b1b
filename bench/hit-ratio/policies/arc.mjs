// ARC (Megiddo and Modha, FAST 2003): a list of keys seen once and one of keys seen again, each with a list of keys evicted from it.
import { keysOf, Lists } from "./lists.mjs";

const ONCE = 0;
const AGAIN = 1;
const LEFT_ONCE = 2;
const LEFT_AGAIN = 3;

export function arc(trace, capacity) {
  const lists = new Lists(keysOf(trace), 4);
  const { sizes, oldest } = lists;
  let target = 0;
  let hits = 0;

  function replace(isFromAgain) {
    const { [ONCE]: once } = sizes;
    const takesOnce = once > 0 && (once > target || (isFromAgain && once === target));
    if (takesOnce) lists.push(LEFT_ONCE, oldest[ONCE]);
    else lists.push(LEFT_AGAIN, oldest[AGAIN]);
  }

  for (const key of trace) {
    const list = lists.of(key);
    if (list === ONCE || list === AGAIN) {
      hits++;
    } else if (list === LEFT_ONCE) {
      target = Math.min(capacity, target + Math.max(1, sizes[LEFT_AGAIN] / sizes[LEFT_ONCE]));
      replace(false);
    } else if (list === LEFT_AGAIN) {
      target = Math.max(0, target - Math.max(1, sizes[LEFT_ONCE] / sizes[LEFT_AGAIN]));
      replace(true);
    } else {
      const recent = sizes[ONCE] + sizes[LEFT_ONCE];
      const all = recent + sizes[AGAIN] + sizes[LEFT_AGAIN];
      if (recent === capacity) {
        if (sizes[ONCE] < capacity) {
          lists.remove(oldest[LEFT_ONCE]);
          replace(false);
        } else lists.remove(oldest[ONCE]);
      } else if (all >= capacity) {
        if (all === 2 * capacity) lists.remove(oldest[LEFT_AGAIN]);
        replace(false);
      }
      lists.push(ONCE, key);
      continue;
    }
    lists.push(AGAIN, key);
  }
  return hits;
}
