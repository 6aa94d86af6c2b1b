// Polls a condition about another process until it holds; the only place where tests wait for real time.
import { setTimeout as pause } from "node:timers/promises";
import { soon } from "./pace.ts";

export interface UntilOptions {
  /** What is waited for, for the error. */
  readonly what: string;
  /** Where nothing but the tests runs; longer on a busy machine. Default: 15 seconds. */
  readonly timeoutMs?: number;
  /** How long to wait before the next look. Default: 10; more where to look takes long. */
  readonly everyMs?: number;
  /** When true, waiting is pointless and ends at once. */
  readonly stopWhen?: () => boolean;
}

/** Resolves with the first result that is neither false nor undefined. A throw counts as "not yet". */
export async function until<T>(
  ask: () => T | Promise<T>,
  { what, timeoutMs = 15_000, everyMs = 10, stopWhen }: UntilOptions,
): Promise<Exclude<T, false | undefined>> {
  const began = performance.now();
  let lastError: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== false && answer !== undefined) return answer as Exclude<T, false | undefined>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (stopWhen?.()) throw new Error(`${what}: it never will.`, { cause: lastError });
    const waitedMs = performance.now() - began;
    if (waitedMs > soon(timeoutMs))
      throw new Error(`${what}: not so after ${Math.round(waitedMs)} ms.`, { cause: lastError });
    await pause(everyMs);
  }
}
