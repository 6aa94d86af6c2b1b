// @CacheMethod: `cached` as a decorator for `experimentalDecorators`, which Nest uses.
import { type CachedOptions, cached } from "../../functions/cached.ts";
import type { XCache } from "../../xcache.ts";

type AnyMethod = (...args: never[]) => Promise<unknown>;

export interface CacheMethodOptions<Self, Args extends readonly unknown[], Result>
  extends Omit<CachedOptions<Self, Args, Result>, "cache"> {
  /** Returns the cache to use for an object. Default: the one passed to setDefaultCache. */
  readonly cache?: (self: Self) => XCache;
}

/** Caches the results of an async method, as `cached` does. Keys begin with `name`, by default `Class.method`. */
export function CacheMethod<Self extends object, Args extends readonly unknown[], Result>({
  cache: cacheOf,
  ...options
}: CacheMethodOptions<Self, Args, Result> = {}) {
  return <F extends AnyMethod>(
    target: Self,
    property: string | symbol,
    descriptor: TypedPropertyDescriptor<F>,
  ): TypedPropertyDescriptor<F> => {
    const method = descriptor.value as unknown as (this: Self, ...args: unknown[]) => Promise<unknown>;
    const wrappers = new WeakMap<object, typeof method>();
    const name = options.name ?? `${target.constructor.name}.${String(property)}`;

    function wrapperOf(cache: XCache | undefined): typeof method {
      let wrapper = wrappers.get(cache ?? target);
      if (wrapper === undefined) {
        const given = { ...options, name, ...(cache && { cache }) } as unknown as CachedOptions;
        wrapper = cached(method, given as never) as typeof method;
        wrappers.set(cache ?? target, wrapper);
      }
      return wrapper;
    }

    const value = function (this: Self, ...args: unknown[]): Promise<unknown> {
      return wrapperOf(cacheOf?.(this)).apply(this, args);
    };
    return { ...descriptor, value: copyMetadata(value, method) as unknown as F };
  };
}

/** Nest identifies a handler by its name and by the metadata that other decorators stored on it. */
function copyMetadata<F extends object>(value: F, method: F & { readonly name: string }): F {
  for (const key of Reflect.getOwnMetadataKeys?.(method) ?? [])
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, method), value);
  return Object.defineProperty(value, "name", { value: method.name, configurable: true });
}
