// `cached`: caches the results of a function, as a wrapper, in curried form and as a method decorator.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { decorateMethod } from "./cached-method.ts";
import { type CachedOptions, checkOptions, type UncheckedOptions } from "./cached-options.ts";
import { CallPlan, identity } from "./call-plan.ts";
import { requireName } from "./function-name.ts";
import { type AnyMethod, type CacheControls, planOf, wrap } from "./wrapped-function.ts";

export type { CachedOptions } from "./cached-options.ts";
export type { WarmOptions } from "./call-plan.ts";
export type { CacheForFunctions } from "./default-cache.ts";
export type { CacheControls } from "./wrapped-function.ts";

type AnyFunction = (...args: never[]) => unknown;
type AsyncFunction = (...args: never[]) => Promise<unknown>;
type ResultOf<F extends AnyFunction> = Awaited<ReturnType<F>>;

/** The function's own type if it returns a promise (generic signatures survive), else the same returning a promise. */
type Promising<F extends AnyFunction> = [ReturnType<F>, Promise<ResultOf<F>>] extends [
  Promise<unknown>,
  ReturnType<F>,
]
  ? F
  : (this: ThisParameterType<F>, ...args: Parameters<F>) => Promise<ResultOf<F>>;

/** A function whose results are cached. */
export type Cached<F extends AnyFunction> = Promising<F> & CacheControls<Parameters<F>, ResultOf<F>>;

/** `unknown` if callbacks with `This`, `Args` and `Result` fit `F`, a method of `Self`; otherwise a type that nothing fits. */
type Fits<F extends AnyFunction, Self, This, Args extends readonly unknown[], Result> = [
  (this: This, ...args: Args) => void,
  ResultOf<F>,
] extends [(this: Self, ...args: Parameters<F>) => void, Result]
  ? unknown
  : { readonly "the callbacks of cached() expect other arguments or another result": never };

/** `cached(options)`: wraps a function, or decorates a method. */
export interface CachedWrapper<This, Args extends readonly unknown[], Result> {
  <Self, F extends AsyncFunction>(
    method: F & Fits<F, Self, This, Args, Result>,
    context: ClassMethodDecoratorContext<Self>,
  ): F;
  // A generic signature survives only where the type of the parameter is `F` alone.
  <F extends AnyFunction>(
    fn: F,
    ...misfit: unknown extends Fits<F, ThisParameterType<F>, This, Args, Result> ? [] : [never]
  ): Cached<F>;
  // Says why any other function does not fit.
  <F extends AnyFunction>(fn: F & Fits<F, ThisParameterType<F>, This, Args, Result>): Cached<F>;
}

/**
 * Wraps `fn` so that repeated calls with equal arguments return the stored result until it expires or is invalidated.
 * The wrapper always returns a promise; whatever the function throws, even synchronously, rejects it. Throws ConfigError
 * NAME_REQUIRED, NAME_TAKEN, ARGUMENT_INVALID; with a default cache or on a method, the name is claimed on first use.
 *
 * @example
 * ```ts
 * const getUser = cached(fetchUser, { cache, ttl: "1m", tags: (id) => [`user:${id}`] });
 * await getUser(1); // miss: runs fetchUser
 * await getUser(1); // hit
 * await getUser.invalidate(1);
 * ```
 */
export function cached<F extends AsyncFunction>(method: F, context: ClassMethodDecoratorContext): F;
export function cached<F extends AnyFunction>(
  fn: F,
  options?: CachedOptions<ThisParameterType<F>, Parameters<F>, ResultOf<F>>,
): Cached<F>;
export function cached<
  This = unknown,
  Args extends readonly unknown[] = readonly unknown[],
  Result = unknown,
>(options?: CachedOptions<This, Args, Result>): CachedWrapper<This, Args, Result>;
export function cached(subject: unknown, second?: unknown): unknown {
  if (typeof subject !== "function") {
    if (second !== undefined) throw notAFunction(subject);
    const options: unknown = subject === undefined ? {} : subject;
    checkOptions(options);
    return (fn: unknown, context?: unknown) => apply(fn, options, context);
  }
  if (isDecoratorContext(second)) return apply(subject, {}, second);
  const options: unknown = second === undefined ? {} : second;
  checkOptions(options);
  return apply(subject, options, undefined);
}

/**
 * The type of a decorated method such as `users.find`, whose declared type a decorator cannot change:
 * `asCached(users.find).invalidate(1)`. Throws ConfigError ARGUMENT_INVALID if it is not wrapped.
 */
export function asCached<F extends AnyFunction>(fn: F): Cached<F> {
  if (planOf(fn) !== undefined) return fn as unknown as Cached<F>;
  throw new ConfigError(
    "ARGUMENT_INVALID",
    `asCached(): expected a function wrapped by cached(); got ${describeArrival(fn)}.`,
  );
}

function isDecoratorContext(value: unknown): value is ClassMethodDecoratorContext {
  return typeof value === "object" && value !== null && "kind" in value && "addInitializer" in value;
}

function apply(fn: unknown, options: UncheckedOptions, context: unknown): unknown {
  if (isDecoratorContext(context)) {
    if (context.kind === "method") return decorateMethod(fn as AnyMethod, options, context);
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `@cached() decorates methods; got a ${(context as { kind: string }).kind}.`,
    );
  }
  const isLegacyDecorator = typeof context === "string" || typeof context === "symbol";
  if (isLegacyDecorator || typeof fn !== "function") throw notAFunction(fn);
  const only = identity(options.name ?? requireName(fn.name, "The function given to cached()"), { fn });
  const plan = new CallPlan(fn as AnyMethod, options, () => only);
  plan.prepare(undefined);
  return wrap(plan, undefined);
}

function notAFunction(arrived: unknown): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `cached(): expected a function or a method; got ${describeArrival(arrived)}.`,
    { hint: "As a decorator it needs standard decorators: turn `experimentalDecorators` off." },
  );
}
