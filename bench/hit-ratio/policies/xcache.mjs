// Ours: not a simulation but the store itself, used as a cache: looked up, and written after a miss.

import { Sweeper } from "../../../.cache/modules/backends/memory/sweeper.js";
import { Table } from "../../../.cache/modules/backends/memory/table.js";
import { systemClock } from "../../../.cache/modules/core/clock.js";

const NEVER = Number.POSITIVE_INFINITY;

/** With the store's sweeper: without one, every hit is recorded. */
function open(bounds) {
  const table = new Table({ ...bounds, clock: systemClock });
  const sweeper = new Sweeper(table, systemClock);
  sweeper.start();
  return { table, sweeper, page: table.openPage() };
}

export function xcache(trace, capacity) {
  const { table, sweeper, page } = open({ maxEntries: capacity, maxBytes: NEVER });
  const names = new Map();
  let hits = 0;
  for (const key of trace) {
    const name = names.get(key) ?? `item:${key}`;
    names.set(key, name);
    if (page.peek(name) === undefined) table.put(page, name, { key }, undefined, NEVER);
    else hits++;
  }
  sweeper.stop();
  return hits;
}

/** Bounded by bytes. Returns the hits and their bytes. */
export function xcacheBySize(trace, sizes, maxBytes) {
  const { table, sweeper, page } = open({ maxEntries: trace.length, maxBytes });
  let hits = 0;
  let bytes = 0;
  for (const key of trace) {
    const name = `item:${key}`;
    if (page.peek(name) === undefined) table.put(page, name, { key }, undefined, NEVER, 0, sizes[key]);
    else {
      hits++;
      bytes += sizes[key];
    }
  }
  sweeper.stop();
  return { hits, bytes };
}
