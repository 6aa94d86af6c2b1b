// Ours: not a simulation but the store itself, used as a cache is: looked up, and written after a miss.

import { Slots } from "../../../dist/backends/memory/slots.js";
import { systemClock } from "../../../dist/core/clock.js";

const LIVE = { isLive: () => true };

export function slots(trace, capacity) {
  const store = new Slots({ maxEntries: capacity, maxBytes: Number.POSITIVE_INFINITY, clock: systemClock });
  const index = store.openIndex();
  const names = new Map();
  let hits = 0;
  for (const key of trace) {
    const name = names.get(key) ?? `item:${key}`;
    names.set(key, name);
    const slot = index.get(name);
    if (slot === undefined) {
      store.put(index, name, key, LIVE, 0, Number.POSITIVE_INFINITY);
      continue;
    }
    hits++;
    store.touch(slot);
  }
  return hits;
}
