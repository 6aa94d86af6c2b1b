// Guards every call to a shared store: circuit breaker, deadline, and typed errors.
import type { CircuitBreaker, Pass } from "../breaker.ts";
import type { Clock } from "../clock.ts";
import { OperationTimeoutError, type XCacheError } from "../errors.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { type CallHost, GuardedCall, type Outcome } from "./guarded-call.ts";
import { countsAsFailure, failureKind } from "./store-failure.ts";
import type { StoreNotice } from "./store-notice.ts";

/** A guarded call built from callbacks. */
class CallbackCall<T> extends GuardedCall<T> {
  #start: ((call: Outcome<T>) => void) | undefined;
  #done: ((result: T) => void) | undefined;
  #failed: ((error: XCacheError) => void) | undefined;

  constructor(
    guard: Guard,
    operation: string,
    start: (call: Outcome<T>) => void,
    done: (result: T) => void,
    failed: (error: XCacheError) => void,
  ) {
    super(guard, operation);
    this.#start = start;
    this.#done = done;
    this.#failed = failed;
  }

  start(): void {
    this.#start?.(this);
  }

  succeeded(result: T): void {
    this.#done?.(result);
  }

  failed(error: XCacheError): void {
    this.#failed?.(error);
  }

  protected forget(): void {
    this.#start = undefined;
    this.#done = undefined;
    this.#failed = undefined;
  }
}

export interface GuardOptions {
  /** Work that must finish before any other call to the store. */
  before?(): Promise<void> | undefined;
  /** See Backend. */
  answersInPart?(): boolean;
  /** See Backend. */
  isTransferring?(): boolean;
  readonly notice?: StoreNotice;
}

export class Guard implements CallHost {
  readonly breaker: CircuitBreaker;
  readonly deadlines: DeadlineQueue;
  readonly notice: StoreNotice | undefined;
  readonly #limitMs: number;
  readonly #options: GuardOptions;

  constructor(clock: Clock, breaker: CircuitBreaker, limitMs: number, options: GuardOptions = {}) {
    this.breaker = breaker;
    this.deadlines = new DeadlineQueue(clock, limitMs, () => options.isTransferring?.() === true);
    this.notice = options.notice;
    this.#limitMs = limitMs;
    this.#options = options;
  }

  /** Runs `work` at once, unless the circuit is open; rejects when it takes longer than the deadline. */
  run<T>(operation: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (call: Outcome<T>): void => settle(work(), call);
      this.call<T>(operation, start, resolve, reject);
    });
  }

  /** As `run`, with callbacks. */
  call<T>(
    operation: string,
    start: (call: Outcome<T>) => void,
    done: (result: T) => void,
    failed: (error: XCacheError) => void,
  ): void {
    this.begin(new CallbackCall(this, operation, start, done, failed));
  }

  /** Starts a call at once, unless the circuit is open; it fails when it takes longer than the deadline. */
  begin<T>(call: GuardedCall<T>): void {
    try {
      call.pass = this.breaker.enter(call.operation);
    } catch (error) {
      call.failed(error as XCacheError);
      return;
    }
    this.deadlines.add(call);
    try {
      const before = this.#options.before?.();
      if (before === undefined) call.start();
      else
        before
          .then(() => {
            if (!call.isOver) call.start();
          })
          .catch((thrown: unknown) => call.fail(thrown));
    } catch (thrown) {
      call.fail(thrown);
    }
  }

  /** Reports a failed call to the breaker. */
  failed(pass: Pass, error: XCacheError): void {
    const isFailure = countsAsFailure(error);
    if (isFailure) this.notice?.failed(error);
    if (isFailure && this.#options.answersInPart?.() !== true) this.breaker.fail(pass, failureKind(error));
    else this.breaker.succeed(pass);
  }

  late(operation: string): OperationTimeoutError {
    return new OperationTimeoutError(
      `the store did not answer ${operation} within operation_timeout (${this.#limitMs / 1000} s)`,
      { operation },
    );
  }
}

/** Settles a call as a promise does. */
export function settle<T>(work: Promise<T>, call: Outcome<T>): void {
  work.then(
    (result) => call.succeed(result),
    (error: unknown) => call.fail(error),
  );
}
