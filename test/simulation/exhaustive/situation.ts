// Where an exploration stands between two events: both processes, the store, what is on its way, and what each process had
// seen of the other when something happened in it that the checker looks at.
import type { ProcessState } from "./process-states.ts";

export interface Event {
  /** A call begins, the store executes the next command of a process, a frame arrives, a load ends, a timer fires. */
  readonly do: "begin" | "serve" | "deliver" | "load" | "tick";
  readonly process: 0 | 1;
}

export type Both<T> = readonly [T, T];

/**
 * What the checker compares between the processes, as far as it decides. A larger number is stricter: whatever violates a
 * guarantee with smaller ones does so with larger ones too.
 */
export interface Account {
  /**
   * For each read that began: how many changes of the other process had ended, of which this one had heard. For each load
   * that began: likewise, and how few changes of the other had begun. For each `set` that ended: how few had begun.
   */
  readonly seen: Both<readonly number[]>;
  /** For each frame on its way to a process: how many changes of the other had ended when it was sent. */
  readonly queued: Both<readonly number[]>;
}

export interface Situation extends Account {
  readonly states: Both<ProcessState>;
  readonly store: number;
  /** The numbers of the commands and frames on their way. */
  readonly toServer: Both<readonly number[]>;
  readonly toClient: Both<readonly number[]>;
  readonly time: number;
  /** For each load that began: how many of the other process had. No order of loads is stricter than another. */
  readonly order: Both<readonly number[]>;
  /** The process whose call has just begun, if it is not to be followed by an event of the other. */
  readonly begun: "" | "0" | "1" | "0 silently" | "1 silently";
}

/** Situations with the same key differ only in their accounts. */
export function keyOf({ states, store, toServer, toClient, time, order, begun }: Situation): string {
  const [one, other] = states;
  return `${one.number} ${other.number} ${store} ${toServer[0]};${toServer[1]} ${toClient[0]};${toClient[1]} ${time} ${order[0]};${order[1]} ${begun}`;
}

/** Whether whatever can be found from `other` is found from `account`. */
export function covers(account: Account, other: Account): boolean {
  for (const process of [0, 1] as const) {
    if (!areAtLeast(account.seen[process], other.seen[process])) return false;
    if (!areAtLeast(account.queued[process], other.queued[process])) return false;
  }
  return true;
}

function areAtLeast(numbers: readonly number[], others: readonly number[]): boolean {
  for (let at = 0; at < numbers.length; at++)
    if ((numbers[at] as number) < (others[at] as number)) return false;
  return true;
}

/** The list with another entry at one place. */
export function withAt<T>(both: Both<T>, process: number, entry: T): Both<T> {
  return process === 0 ? [entry, both[1]] : [both[0], entry];
}
