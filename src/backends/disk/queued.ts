// Operations that wait for their commit, and what was planned for them.
import type { Change } from "./change.ts";
import type { Facts } from "./layout/stored-record.ts";
import type { Operation } from "./operation.ts";

export interface Queued {
  readonly operation: Operation;
  readonly due: number;
  /** Somebody was told how it ended. */
  isOver: boolean;
}

export interface Planned {
  readonly queued: Queued;
  readonly change: Change;
}

export interface Plans {
  readonly planned: readonly Planned[];
  /** For which there is nothing to be changed. */
  readonly done: readonly Queued[];
}

/** When the last of those is due that anybody waits for; making room is not to keep a commit from being known to hang. */
export function latestDue(batch: readonly Queued[]): number | undefined {
  const dues = batch.map(({ due }) => due).filter((due) => due < Number.POSITIVE_INFINITY);
  return dues.length === 0 ? undefined : Math.max(...dues);
}

/** When the first of those is due that were not told how they ended; Infinity: there are none. */
export function earliestDue(waiting: readonly Queued[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { isOver, due } of waiting) if (!isOver && due < least) least = due;
  return least;
}

/** Whether an operation has to wait for the next commit: its record is changed in this one. */
export function isTaken(
  { key, isWrite }: Operation,
  coming: ReadonlyMap<string, Facts | undefined>,
): boolean {
  if (key === undefined || !coming.has(key)) return false;
  return !isWrite || coming.get(key) === undefined;
}
