// Resolves a caller's options to what a store needs: validated, in milliseconds, with the defaults filled in.
import { requireFlag, requireOptions } from "./arguments.ts";
import { HOUR_MS, OR_TEXT, toSeconds, warnOfMilliseconds } from "./duration.ts";
import { ConfigError, describeArrival } from "./errors.ts";
import { areChecked } from "./function-record.ts";
import { isTag, requireTags } from "./keys.ts";
import type { EntryOptions } from "./namespace.ts";
import type { GetOrSetOptions, Load, LoadContext, SetOptions } from "./options.ts";

/** The configured values that options fall back on; seconds. */
export interface EntryDefaults {
  readonly defaultTtl: number;
  /** Shortens a default ttl by up to this fraction, at random. */
  readonly ttlJitter: number;
  readonly staleIfError: number;
  readonly staleWhileRevalidate: number;
  random(): number;
}

export interface ResolvedLoadOptions {
  readonly entry: EntryOptions;
  readonly lock: boolean;
  readonly force: boolean;
  readonly staleIfErrorMs: number;
  readonly staleWhileRevalidateMs: number;
  readonly softTimeoutMs: number;
  readonly hardTimeoutMs: number;
}

const SET_OPTIONS: readonly (keyof SetOptions)[] = ["ttl", "tags"];
const LOAD_OPTIONS: readonly (keyof GetOrSetOptions)[] = [
  ...SET_OPTIONS,
  "staleIfError",
  "staleWhileRevalidate",
  "softTimeout",
  "hardTimeout",
  "lock",
  "forceLoad",
];

const NO_TAGS: readonly string[] = Object.freeze([]);

/** A lifetime in milliseconds. `name` is the caller's name for it. */
export function ttlToMs(ttl: unknown, name = "ttl"): number {
  const seconds = toSeconds(ttl);
  if (typeof seconds !== "number" || !(seconds >= 0.001)) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `${name} must be a number of seconds of at least 0.001 (Infinity: never expires), ${OR_TEXT}, got ${describeArrival(ttl)}`,
    );
  }
  if (seconds >= HOUR_MS && typeof ttl === "number") warnOfMilliseconds(seconds, name);
  return wholeMs(seconds);
}

function wholeMs(seconds: number): number {
  const ms = seconds * 1000;
  // The product may be just below the exact decimal number of milliseconds because of a rounding error.
  return ms === Number.POSITIVE_INFINITY ? ms : Math.floor(ms + ms * Number.EPSILON);
}

function windowToMs(given: unknown, name: string, otherwise: number): number {
  if (given === undefined) return otherwise * 1000;
  const seconds = toSeconds(given);
  if (typeof seconds !== "number" || !(seconds >= 0)) {
    throw new ConfigError(
      "ARGUMENT_INVALID",
      `${name} must be a number of seconds of at least 0, ${OR_TEXT}, got ${describeArrival(given)}`,
    );
  }
  return seconds * 1000;
}

function defaultTtlMs(defaults: EntryDefaults): number {
  const ms = wholeMs(defaults.defaultTtl);
  if (defaults.ttlJitter === 0 || ms === Number.POSITIVE_INFINITY) return ms;
  return Math.max(1, Math.floor(ms * (1 - defaults.ttlJitter * defaults.random())));
}

export function resolveSetOptions(options: SetOptions | undefined, defaults: EntryDefaults): EntryOptions {
  if (options === undefined) return { ttlMs: defaultTtlMs(defaults), staleMs: 0, tags: NO_TAGS };
  requireOptions(options, SET_OPTIONS);
  return entryOptionsOf(options, defaults, 0);
}

/** The options of every write without options; undefined where jitter makes them differ. */
export function defaultEntryOptions(defaults: EntryDefaults): EntryOptions | undefined {
  return defaults.ttlJitter === 0 ? resolveSetOptions(undefined, defaults) : undefined;
}

/** The same for getOrSet. */
export function defaultLoadOptions(defaults: EntryDefaults): ResolvedLoadOptions | undefined {
  return defaults.ttlJitter === 0 ? resolveLoadOptions(undefined, defaults) : undefined;
}

function entryOptionsOf(options: SetOptions, defaults: EntryDefaults, staleMs: number): EntryOptions {
  return {
    ttlMs: options.ttl === undefined ? defaultTtlMs(defaults) : ttlToMs(options.ttl),
    staleMs,
    tags: options.tags === undefined ? NO_TAGS : requireTags(options.tags),
  };
}

export function resolveLoadOptions(
  options: GetOrSetOptions | undefined,
  defaults: EntryDefaults,
): ResolvedLoadOptions {
  if (options !== undefined) requireOptions(options, LOAD_OPTIONS);
  const given = options ?? {};
  const staleIfErrorMs = windowToMs(given.staleIfError, "staleIfError", defaults.staleIfError);
  const staleWhileRevalidateMs = windowToMs(
    given.staleWhileRevalidate,
    "staleWhileRevalidate",
    defaults.staleWhileRevalidate,
  );
  return {
    entry: entryOptionsOf(given, defaults, Math.max(staleIfErrorMs, staleWhileRevalidateMs)),
    lock: requireFlag(given.lock, "lock", true),
    force: requireFlag(given.forceLoad, "forceLoad", false),
    staleIfErrorMs,
    staleWhileRevalidateMs,
    softTimeoutMs: windowToMs(given.softTimeout, "softTimeout", Number.POSITIVE_INFINITY),
    hardTimeoutMs: windowToMs(given.hardTimeout, "hardTimeout", Number.POSITIVE_INFINITY),
  };
}

/** Whether a stored value may be returned: not with `forceLoad`, nor for options that `resolveLoadOptions` rejects. */
export function allowHits(options: GetOrSetOptions, defaults: EntryDefaults): boolean {
  try {
    if (!areChecked(options) && !areLoadOptions(options)) resolveLoadOptions(options, defaults);
    return options.forceLoad !== true;
  } catch {
    return false;
  }
}

/** Whether `resolveLoadOptions` certainly accepts these options; calling it would cost as much as the hit itself. */
function areLoadOptions(options: GetOrSetOptions): boolean {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return false;
  for (const name in options) {
    if (!isLoadOption(name, options[name as keyof GetOrSetOptions])) return false;
  }
  return true;
}

function isLoadOption(name: string, value: unknown): boolean {
  if (value === undefined) return LOAD_OPTIONS.includes(name as keyof GetOrSetOptions);
  switch (name) {
    case "ttl":
      return isAtLeast(value, 0.001);
    case "tags":
      return isTag(value) || (Array.isArray(value) && value.every(isTag));
    case "lock":
    case "forceLoad":
      return typeof value === "boolean";
    case "staleIfError":
    case "staleWhileRevalidate":
    case "softTimeout":
    case "hardTimeout":
      return isAtLeast(value, 0);
    default:
      return false;
  }
}

function isAtLeast(duration: unknown, least: number): boolean {
  const seconds = toSeconds(duration);
  return typeof seconds === "number" && seconds >= least;
}

/** What a load decides through its context while it runs. */
export class LoadDecisions {
  #options: EntryOptions;
  #skipped = false;

  constructor(options: EntryOptions) {
    this.#options = options;
  }

  get options(): EntryOptions {
    return this.#options;
  }

  get skipped(): boolean {
    return this.#skipped;
  }

  context<T>(stale: T | undefined, signal: AbortSignal): LoadContext<T> {
    return {
      signal,
      stale,
      setTtl: (ttl) => {
        this.#options = { ...this.#options, ttlMs: ttlToMs(ttl) };
      },
      setTags: (tags) => {
        this.#options = {
          ...this.#options,
          tags: requireTags([...this.#options.tags, ...requireTags(tags)]),
        };
      },
      skip: () => {
        this.#skipped = true;
      },
    };
  }
}

export function requireLoad(load: unknown): asserts load is Load<unknown> {
  if (typeof load !== "function") {
    throw new ConfigError("ARGUMENT_INVALID", `load must be a function, got ${describeArrival(load)}`, {
      operation: "getOrSet",
    });
  }
}
