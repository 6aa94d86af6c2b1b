// What `cached` can be told, and the check that it was told something sensible.
import { ConfigError, describeArrival } from "../core/errors.ts";
import type { GetOrSetOptions } from "../core/options.ts";
import type { CacheForFunctions } from "./default-cache.ts";

/**
 * `This`, `Args` and `Result` are those of the function; in the curried form they are unknown unless the callbacks
 * annotate them.
 */
export interface CachedOptions<
  This = unknown,
  Args extends readonly unknown[] = readonly unknown[],
  Result = unknown,
> extends Omit<GetOrSetOptions, "tags" | "forceLoad"> {
  /** Default: the one given to setDefaultCache, looked up at each call. */
  readonly cache?: CacheForFunctions;
  /** What its keys begin with. Default: the function's name; for a method `Class.method`. */
  readonly name?: string;
  /** What identifies a call, in place of all its arguments: any plain data. Default: the arguments. */
  readonly key?: (this: This, ...args: Args) => unknown;
  /** Labels for invalidateTags, fixed or made from the arguments. Default: none. */
  readonly tags?: readonly string[] | ((this: This, ...args: Args) => readonly string[]);
  /** Further labels, made from the result. Default: none. */
  readonly resultTags?: (this: This, result: Result, ...args: Args) => readonly string[];
  /** Whether to store a result; it is returned either way. Default: always. */
  readonly when?: (this: This, result: Result, ...args: Args) => boolean;
}

/** The options as the implementation sees them: any function's. */
export type UncheckedOptions = CachedOptions<unknown, readonly never[], never>;

/** Throws ConfigError ARGUMENT_INVALID. */
export function checkOptions(options: UncheckedOptions): void {
  const { cache, name, tags } = options;
  expectThat(cache === undefined || typeof cache?.getOrSet === "function", "cache", "a cache", cache);
  expectThat(
    name === undefined || (typeof name === "string" && name !== ""),
    "name",
    "a non-empty string",
    name,
  );
  expectThat(
    tags === undefined || typeof tags === "function" || isListOfStrings(tags),
    "tags",
    "a list of strings or a function that returns one",
    tags,
  );
  for (const field of ["key", "resultTags", "when"] as const) {
    const value = options[field];
    expectThat(value === undefined || typeof value === "function", field, "a function", value);
  }
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
