// The end of a process whose commit waits for another one: Node waits for its threads, and would do so for ever.
import { isMainThread } from "node:worker_threads";
import type { Committer } from "./committer.ts";
import { pauseThread } from "./lock/pause.ts";

const LOOK_EVERY_MS = 2;

/**
 * To be told when the process exits. A commit that comes through by its deadline is waited for by Node itself; one that
 * does not never will while the lock is held.
 */
export function endDespiteLock(committers: Iterable<Committer>): void {
  // A thread that ends is not the end of its process.
  if (!isMainThread) return;
  for (const committer of committers) {
    while (!committer.isAtRest) {
      if (committer.isStuck) process.kill(process.pid, "SIGKILL");
      pauseThread(LOOK_EVERY_MS);
    }
  }
}
