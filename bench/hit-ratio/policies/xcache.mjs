// Ours: not a simulation but the store itself, used as a cache is: looked up, and written after a miss.

import { Table } from "../../../.cache/modules/backends/memory/table.js";
import { systemClock } from "../../../.cache/modules/core/clock.js";

export function xcache(trace, capacity) {
  const table = new Table({ maxEntries: capacity, maxBytes: Number.POSITIVE_INFINITY, clock: systemClock });
  const page = table.openPage();
  const names = new Map();
  let hits = 0;
  for (const key of trace) {
    const name = names.get(key) ?? `item:${key}`;
    names.set(key, name);
    if (page.peek(name) === undefined) table.put(page, name, { key }, undefined, Number.POSITIVE_INFINITY);
    else hits++;
  }
  return hits;
}
