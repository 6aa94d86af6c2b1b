// Counts the changes that this process makes to the namespaces of its semantic caches.
import type { XCache } from "../xcache.ts";

/** Never goes back. */
export interface ChangeCount {
  readonly value: number;
}

/** One for all: cache objects on one store share their loads, so what one has counted another must be able to compare. */
const count = { value: 0 };
const counted = new WeakSet<XCache>();

const changed = (): void => {
  count.value++;
};

export function changesOf(space: XCache): ChangeCount {
  if (!counted.has(space)) space.on("set", changed).on("delete", changed).on("invalidate", changed);
  counted.add(space);
  return count;
}
