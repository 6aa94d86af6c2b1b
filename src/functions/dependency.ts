// `cachedDependency`: wraps a function that provides database sessions, so that reads are cached and commits invalidate.

import type { CacheForSessions, SessionAdapter, SessionScope, SessionTracker } from "../core/db-session.ts";
import { rememberSession } from "../core/db-session.ts";
import { ttlToMs } from "../core/entry-options.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { defaultCache } from "./default-cache.ts";
import {
  checkDependencyOptions,
  type DependencyOptions,
  expectThat,
  isSessionCache,
  tableNames,
} from "./dependency-options.ts";
import { isGeneratorFunction, mapResult } from "./resource.ts";

export type { DependencyOptions } from "./dependency-options.ts";

type AnyDependency = (...args: never[]) => unknown;

/**
 * Wraps a function that provides a session: it returns it, resolves to it, or is an async generator that yields it. The
 * wrapper is called, awaited or iterated just like the function, and provides the same session with reads of the named
 * tables cached and commits invalidating them. Throws ConfigError ARGUMENT_INVALID, CONFIG_UNKNOWN_FIELD and, when
 * called, NO_DEFAULT_CACHE or ARGUMENT_INVALID for a session of an unknown library.
 */
export type CachedDependency = <Dependency extends AnyDependency>(
  dependency: Dependency,
  options: DependencyOptions,
) => Dependency;

/** The parts that `cachedDependency` is built from. */
export interface DependencyParts {
  /** The adapters that are detected automatically, in order. */
  readonly adapters: readonly SessionAdapter[];
  trackSessions(scope: SessionScope): SessionTracker;
}

export function dependencyWrapper(parts: DependencyParts): CachedDependency {
  return <Dependency extends AnyDependency>(
    dependency: Dependency,
    options: DependencyOptions,
  ): Dependency => {
    expectThat(typeof dependency === "function", "the dependency", "a function", dependency);
    checkDependencyOptions(options);
    const name = dependency.name || "the dependency";
    const trackers = new WeakMap<CacheForSessions, SessionTracker>();
    const wrapSession = (session: unknown): unknown => {
      const adapter = adapterOf(session, options.adapter, parts.adapters, name);
      const cache = cacheOf(options, name);
      const wrapped = adapter.wrap(session as object, trackerFor(cache, options, parts, trackers));
      const dialect = adapter.dialect?.(session as object);
      rememberSession(wrapped, { scope: scopeOf(cache, options), dialect });
      return wrapped;
    };
    return wrapperOf(dependency, wrapSession) as unknown as Dependency;
  };
}

type Call = (this: unknown, ...args: unknown[]) => unknown;

function wrapperOf(dependency: AnyDependency, wrapSession: (session: unknown) => unknown): Call {
  const call = dependency as unknown as Call;
  const wrapper: Call = isGeneratorFunction(dependency)
    ? async function* (this: unknown, ...args: unknown[]) {
        return yield* mapResult(call.apply(this, args), wrapSession) as AsyncGenerator;
      }
    : function (this: unknown, ...args: unknown[]) {
        return mapResult(call.apply(this, args), wrapSession);
      };
  Object.defineProperty(wrapper, "name", { value: dependency.name, configurable: true });
  Object.defineProperty(wrapper, "length", { value: dependency.length, configurable: true });
  return wrapper;
}

function scopeOf(cache: CacheForSessions, { ttl, feed, ...options }: DependencyOptions): SessionScope {
  return {
    cache,
    tables: tableNames(options),
    ...(ttl === undefined ? {} : { ttl: ttlToMs(ttl) / 1_000 }),
    ...(feed === undefined ? {} : { feed }),
  };
}

function trackerFor(
  cache: CacheForSessions,
  options: DependencyOptions,
  { trackSessions }: DependencyParts,
  trackers: WeakMap<CacheForSessions, SessionTracker>,
): SessionTracker {
  let tracker = trackers.get(cache);
  if (tracker === undefined) {
    tracker = trackSessions(scopeOf(cache, options));
    trackers.set(cache, tracker);
  }
  return tracker;
}

function cacheOf({ cache }: DependencyOptions, name: string): CacheForSessions {
  if (cache !== undefined) return cache;
  const fallback: unknown = defaultCache(name);
  expectThat(
    isSessionCache(fallback),
    "the default cache",
    "a cache with get, getOrSet and invalidateTags",
    fallback,
  );
  return fallback;
}

function adapterOf(
  session: unknown,
  given: SessionAdapter | undefined,
  known: readonly SessionAdapter[],
  name: string,
): SessionAdapter {
  const candidates = given === undefined ? known : [given];
  const isObject = (typeof session === "object" && session !== null) || typeof session === "function";
  const found = isObject ? candidates.find((adapter) => adapter.recognises(session)) : undefined;
  if (found !== undefined) return found;
  if (isObject && given === undefined && isSynchronous(session)) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `${name}() provided ${describeArrival(session)}, a synchronous SQLite connection, which cannot use an async cache.`,
      { hint: "Use it through knex, kysely, typeorm or drizzle-orm/sqlite-proxy." },
    );
  }
  throw new ConfigError(
    "ARGUMENT_INVALID",
    `${name}() provided ${describeArrival(session)}; expected a session of ${candidates.map((adapter) => adapter.name).join(", ")}.`,
    { hint: "Return the session itself, or pass a SessionAdapter of its library as `adapter`." },
  );
}

/** A connection of better-sqlite3, node:sqlite or libsql. */
function isSynchronous(session: object): boolean {
  const { prepare, exec } = session as Readonly<Record<string, unknown>>;
  return typeof prepare === "function" && typeof exec === "function";
}
