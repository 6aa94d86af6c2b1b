// Asks one after another until somebody answers; who takes long is not waited for, the next is asked meanwhile.
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";

export interface Patience {
  readonly clock: Clock;
  /** How long one is waited for before the next is asked as well. */
  readonly eachMs: number;
  readonly allMs: number;
  /** Gives up, with an XCacheError as its reason. */
  readonly signal: AbortSignal;
}

/** Nobody answered. */
export class NoAnswerError extends Error {
  readonly failures: readonly XCacheError[];

  constructor(failures: readonly XCacheError[]) {
    super("nobody answered");
    this.failures = failures;
  }
}

/** The first answer; the signal ends the questions that are then still open. Rejects with NoAnswerError. */
export function firstAnswer<T>(
  questions: readonly ((signal: AbortSignal) => Promise<T>)[],
  { clock, eachMs, allMs, signal }: Patience,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = new AbortController();
    const failures: XCacheError[] = [];
    let asked = 0;
    let impatience: Timer | undefined;
    const end = (): void => {
      impatience?.cancel();
      limit.cancel();
      signal.removeEventListener("abort", giveUp);
      stop.abort(new ConnectionError("the answer is not needed any more"));
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
      if (failures.length < questions.length) {
        askNext();
        return;
      }
      end();
      reject(new NoAnswerError(failures));
    };
    const askNext = (): void => {
      impatience?.cancel();
      const question = questions[asked++];
      if (question === undefined) return;
      question(stop.signal).then(answered, failed);
      impatience = clock.after(eachMs, askNext);
    };
    const limit = clock.after(allMs, () => {
      end();
      const late = new OperationTimeoutError(`no answer within connect_timeout (${allMs / 1000} s)`);
      reject(new NoAnswerError([...failures, late]));
    });
    signal.addEventListener("abort", giveUp);
    askNext();
  });
}
