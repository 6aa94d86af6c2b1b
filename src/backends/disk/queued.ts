// Operations that wait for their commit, and their planned changes.
import type { Change, Condition } from "./change.ts";
import type { RecordMeta } from "./layout/stored-record.ts";
import type { Operation } from "./operation.ts";

export interface Queued {
  readonly operation: Operation;
  readonly due: number;
  /** Whether its outcome was reported. */
  isSettled: boolean;
}

export interface Planned {
  readonly queued: Queued;
  readonly change: Change;
}

export interface Plans {
  readonly planned: readonly Planned[];
  /** Operations that need no change. */
  readonly done: readonly Queued[];
  /** Of the whole commit. */
  readonly condition: Condition | undefined;
}

/** The latest deadline in a batch. Evictions have none and must not hide that a commit hangs. */
export function latestDue(batch: readonly Queued[]): number | undefined {
  const dues = batch.map(({ due }) => due).filter((due) => due < Number.POSITIVE_INFINITY);
  return dues.length === 0 ? undefined : Math.max(...dues);
}

/** The earliest deadline of the operations without an outcome; Infinity for none. */
export function earliestDue(waiting: readonly Queued[]): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { isSettled, due } of waiting) if (!isSettled && due < least) least = due;
  return least;
}

/** Whether an operation must wait for the next commit because this one already changes its key. */
export function mustWait(
  { key, isWrite }: Operation,
  pendingWrites: ReadonlyMap<string, RecordMeta | undefined>,
): boolean {
  if (key === undefined || !pendingWrites.has(key)) return false;
  return !isWrite || pendingWrites.get(key) === undefined;
}
