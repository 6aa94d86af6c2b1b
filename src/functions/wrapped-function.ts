// The wrapper that callers of a cached function see: the call itself, and its controls.
import type { CallPlan, WarmOptions } from "./call-plan.ts";

/** The controls of a wrapped function. Their `this` is the method's object, or passed with `.call`. */
export interface CacheControls<Args extends readonly unknown[], Result> {
  /** The key of this call. Throws ConfigError ARGUMENT_INVALID for arguments that cannot be encoded. */
  key(...args: Args): string;
  /** Removes the stored result of this call. Resolves to true if there was one. */
  invalidate(...args: Args): Promise<boolean>;
  /** Runs the function again and stores the result; the old one stays readable meanwhile. */
  refresh(...args: Args): Promise<Result>;
  /** Runs the function without the cache. */
  uncached(...args: Args): Promise<Result>;
  /**
   * Runs every listed call whose result is not stored yet. All are tried; rejects with an AggregateError of the
   * function's errors.
   */
  warm(argsList: Iterable<Args>, options?: WarmOptions): Promise<void>;
}

export type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

const plans = new WeakMap<object, CallPlan>();

/** The plan behind a wrapper; undefined for anything else. */
export function planOf(fn: unknown): CallPlan | undefined {
  return typeof fn === "function" ? plans.get(fn) : undefined;
}

/** Registers `fn` as a wrapper of `plan`. */
export function markWrapper(fn: object, plan: CallPlan): void {
  plans.set(fn, plan);
}

/** `self` is the `this` of calls that come without one. */
export function wrap(plan: CallPlan, self: unknown): AnyMethod {
  const objectOf = (given: unknown): unknown => (given === undefined || given === wrapper ? self : given);

  function wrapper(this: unknown, ...args: unknown[]): Promise<unknown> {
    return plan.call(this === undefined ? self : this, args);
  }
  const controls: CacheControls<unknown[], unknown> & ThisType<unknown> = {
    key(...args) {
      return plan.key(objectOf(this), args);
    },
    invalidate(...args) {
      return plan.invalidate(objectOf(this), args);
    },
    refresh(...args) {
      return plan.refresh(objectOf(this), args);
    },
    uncached(...args) {
      return plan.run(objectOf(this), args);
    },
    warm(argsList, options) {
      return plan.warm(objectOf(this), argsList, options);
    },
  };
  Object.defineProperty(wrapper, "name", { value: plan.fn.name, configurable: true });
  Object.defineProperty(wrapper, "length", { value: plan.fn.length, configurable: true });
  markWrapper(wrapper, plan);
  return Object.assign(wrapper, controls);
}
