// The options of `cached`, and their validation.
import { requireOptions } from "../core/arguments.ts";
import { type EntryDefaults, resolveLoadOptions } from "../core/entry-options.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { GetOrSetOptions, Tags } from "../core/options.ts";
import { type CacheForFunctions, isCache } from "./default-cache.ts";

/**
 * `This`, `Args` and `Result` are those of the function; in the curried form they are unknown unless annotated in the
 * callbacks.
 */
export interface CachedOptions<
  This = unknown,
  Args extends readonly unknown[] = readonly unknown[],
  Result = unknown,
> extends Omit<GetOrSetOptions, "tags" | "forceLoad"> {
  /** Default: the one passed to setDefaultCache, looked up on each call. */
  readonly cache?: CacheForFunctions;
  /** Prefix of its keys. Default: the function's name; for a method `Class.method`. */
  readonly name?: string;
  /** What identifies a call instead of all its arguments: any plain data. Default: the arguments. */
  readonly key?: (this: This, ...args: Args) => unknown;
  /** Labels for invalidateTags, one or a list, fixed or derived from the arguments. Default: none. */
  readonly tags?: Tags | ((this: This, ...args: Args) => Tags);
  /** Further labels, derived from the result. Default: none. */
  readonly resultTags?: (this: This, result: Result, ...args: Args) => Tags;
  /** Whether to store a result; it is returned either way. Default: always. */
  readonly when?: (this: This, result: Result, ...args: Args) => boolean;
}

/** The options as the implementation sees them: any function's. */
export type UncheckedOptions = CachedOptions<unknown, readonly never[], never>;

const OPTION_NAMES: readonly (keyof CachedOptions)[] = [
  "cache",
  "name",
  "key",
  "tags",
  "resultTags",
  "when",
  "ttl",
  "staleIfError",
  "staleWhileRevalidate",
  "softTimeout",
  "hardTimeout",
  "lock",
];

/** Placeholder defaults: the options are only validated here, and the cache applies its own defaults. */
const ANY_DEFAULTS: EntryDefaults = {
  defaultTtl: 1,
  ttlJitter: 0,
  staleIfError: 0,
  staleWhileRevalidate: 0,
  random: () => 0,
};

/** Throws ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD, and InvalidKeyError for an invalid tag. */
export function checkOptions(given: unknown): asserts given is UncheckedOptions {
  expectThat(
    typeof given === "object" && given !== null && !Array.isArray(given),
    "the options",
    "an object",
    given,
  );
  requireOptions(given, OPTION_NAMES);
  const { cache, name, key, tags, resultTags, when, ...forEveryCall } = given as UncheckedOptions;
  expectThat(cache === undefined || isCache(cache), "cache", "a cache", cache);
  expectThat(
    name === undefined || (typeof name === "string" && name !== ""),
    "name",
    "a non-empty string",
    name,
  );
  expectThat(
    tags === undefined || typeof tags === "function" || typeof tags === "string" || isListOfStrings(tags),
    "tags",
    "a string, a list of strings or a function that returns them",
    tags,
  );
  for (const [field, value] of Object.entries({ key, resultTags, when })) {
    expectThat(value === undefined || typeof value === "function", field, "a function", value);
  }
  resolveLoadOptions(
    tags === undefined || typeof tags === "function" ? forEveryCall : { ...forEveryCall, tags },
    ANY_DEFAULTS,
  );
}

function isListOfStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function expectThat(holds: boolean, field: string, expected: string, arrived: unknown): void {
  if (!holds) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `cached(): ${field} must be ${expected}; got ${describeArrival(arrived)}.`,
    );
  }
}
