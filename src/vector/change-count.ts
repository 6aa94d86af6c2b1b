// Counts the changes of a namespace that are made through its cache object, for all who share that object.
import type { XCache } from "../xcache.ts";

/** Never goes back. */
export interface ChangeCount {
  readonly value: number;
}

const counts = new WeakMap<XCache, ChangeCount>();

export function changesOf(space: XCache): ChangeCount {
  const present = counts.get(space);
  if (present !== undefined) return present;
  const count = { value: 0 };
  const changed = (): void => {
    count.value++;
  };
  space.on("set", changed).on("delete", changed).on("invalidate", changed);
  counts.set(space, count);
  return count;
}
