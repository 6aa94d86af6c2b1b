// Runs queries one after another until one answers; while one is slow, the next is started as well.
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { nodeEvents } from "../../../core/lazy-builtin.ts";

export interface QueryLimits {
  readonly clock: Clock;
  /** How long a query may take before the next one is started as well. */
  readonly staggerMs: number;
  readonly timeoutMs: number;
  /** Aborts all queries, with an XCacheError as its reason. */
  readonly signal: AbortSignal;
}

/** Every query failed. */
export class NoAnswerError extends Error {
  readonly failures: readonly XCacheError[];

  constructor(failures: readonly XCacheError[]) {
    super("no query was answered");
    this.failures = failures;
  }
}

/** Resolves to the first answer and aborts the other queries through their signal. Rejects with NoAnswerError. */
export function firstAnswer<T>(
  queries: readonly ((signal: AbortSignal) => Promise<T>)[],
  { clock, staggerMs, timeoutMs, signal }: QueryLimits,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = new AbortController();
    // One for each query.
    nodeEvents().setMaxListeners(0, stop.signal);
    const failures: XCacheError[] = [];
    let started = 0;
    let stagger: Timer | undefined;
    const end = (): void => {
      stagger?.cancel();
      limit.cancel();
      signal.removeEventListener("abort", giveUp);
      stop.abort(new ConnectionError("another server answered first"));
    };
    const giveUp = (): void => {
      end();
      reject(signal.reason);
    };
    const answered = (answer: T): void => {
      end();
      resolve(answer);
    };
    const failed = (thrown: unknown): void => {
      if (stop.signal.aborted) return;
      failures.push(toError(thrown) as XCacheError);
      if (failures.length < queries.length) {
        startNext();
        return;
      }
      end();
      reject(new NoAnswerError(failures));
    };
    const startNext = (): void => {
      stagger?.cancel();
      const query = queries[started++];
      if (query === undefined) return;
      query(stop.signal).then(answered, failed);
      stagger = clock.after(staggerMs, startNext);
    };
    const limit = clock.after(timeoutMs, () => {
      end();
      const late = new OperationTimeoutError(`no answer within connect_timeout (${timeoutMs / 1000} s)`);
      reject(new NoAnswerError([...failures, late]));
    });
    signal.addEventListener("abort", giveUp);
    startNext();
  });
}
