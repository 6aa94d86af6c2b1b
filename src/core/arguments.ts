// Argument checks: each error says what was expected and what arrived.
import type { Clock } from "./clock.ts";
import { type Duration, OR_TEXT, toSeconds } from "./duration.ts";
import { CodecError, ConfigError, describeArrival } from "./errors.ts";
import { CACHE_EVENTS, type CacheEvent } from "./events.ts";
import { requireKey } from "./keys.ts";
import { suggestName } from "./suggest-name.ts";

function wrong(expected: string, arrived: unknown): ConfigError {
  return new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
}

const CLOCK_METHODS = ["now", "coarse", "after", "token", "random"] as const;

export function requireClock(clock: unknown): asserts clock is Clock {
  const methods = (clock ?? {}) as Partial<Record<string, unknown>>;
  const missing = CLOCK_METHODS.filter((name) => typeof methods[name] !== "function");
  if (missing.length === CLOCK_METHODS.length) throw wrong("clock must be a Clock", clock);
  if (missing.length > 0)
    throw new ConfigError("ARGUMENT_INVALID", `clock must be a Clock, got one without ${missing.join(", ")}`);
}

/** A copy of the keys; a single string counts as a list of one. */
export function requireKeys(keys: unknown): readonly string[] {
  if (typeof keys === "string") {
    requireKey(keys);
    return [keys];
  }
  if (!Array.isArray(keys)) throw wrong("keys must be a string or a list of strings", keys);
  for (const key of keys) requireKey(key);
  return keys.slice();
}

/** As `requireKeys`, without duplicates. */
export function requireDistinctKeys(keys: unknown): readonly string[] {
  return [...new Set(requireKeys(keys))];
}

/** The cheap part of the check: the rest of a value is checked when it is encoded or copied. */
export function requireValue(value: unknown): void {
  if (value === undefined || typeof value === "function" || typeof value === "symbol") throw noValue(value);
}

function noValue(value: unknown): CodecError {
  return unsupported(
    describeArrival(value),
    value === undefined ? "Use null for a value that is known to be nothing, or delete the key." : undefined,
  );
}

/** For a value that is stored by reference: awaiting a thenable would return something else than the value itself. */
export function requireShareable(value: unknown): void {
  requireValue(value);
  if (typeof value !== "object" || value === null) return;
  if (typeof thenOf(value as Thenable) !== "function") return;
  throw unsupported("a promise or another object with a then method", "Await it and store the result.");
}

interface Thenable {
  readonly then?: unknown;
}

function thenOf(value: Thenable): unknown {
  try {
    return value.then;
  } catch (cause) {
    throw unreadable(cause);
  }
}

/** A function of its own, so that the check on the hot path stays small enough to inline. */
function unreadable(cause: unknown): CodecError {
  const message = "a value must be plain data, got an object whose then property cannot be read at $.then";
  return new CodecError("VALUE_UNSUPPORTED", message, { path: "$.then", cause });
}

function unsupported(arrived: string, hint: string | undefined): CodecError {
  const message = `a value must be plain data, got ${arrived} at $`;
  return new CodecError("VALUE_UNSUPPORTED", message, { path: "$", ...(hint === undefined ? {} : { hint }) });
}

/** Entries with distinct keys; the last one of a repeated key wins. */
export function requireEntries(entries: unknown): readonly (readonly [string, unknown])[] {
  if (typeof entries !== "object" || entries === null || isAwaited(entries)) {
    throw wrong("entries must be a Map, a list of [key, value] or an object", entries);
  }
  const pairs: unknown[] =
    Symbol.iterator in entries ? [...(entries as Iterable<unknown>)] : Object.entries(entries);
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) throw wrong("each entry must be [key, value]", pair);
    requireKey(pair[0]);
    requireValue(pair[1]);
  }
  return [...new Map(pairs as [string, unknown][])];
}

/** A promise or an async iterable has no entries yet: its properties would be stored, which are none. */
function isAwaited(entries: object): boolean {
  return Symbol.asyncIterator in entries || typeof (entries as Thenable).then === "function";
}

export function requireListener(event: unknown, listener: unknown): void {
  if (!CACHE_EVENTS.includes(event as CacheEvent)) {
    throw wrong(`event must be one of ${CACHE_EVENTS.join(", ")}`, event);
  }
  if (typeof listener !== "function") throw wrong("listener must be a function", listener);
}

/** Requires an object without any fields, own or inherited, other than `names`. */
export function requireOptions(options: unknown, names: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw wrong("options must be an object", options);
  }
  for (const name in options) {
    if (names.includes(name) || isOnObjectPrototype(options, name)) continue;
    const shown = describeArrival(name);
    throw new ConfigError("CONFIG_UNKNOWN_FIELD", `unknown option ${shown}: ${suggestName(name, names)}`);
  }
}

/** Fields that some code added to Object.prototype were not passed by the caller. */
function isOnObjectPrototype(options: object, name: string): boolean {
  return !Object.hasOwn(options, name) && Object.hasOwn(Object.prototype, name);
}

export function requireFlag(value: unknown, name: string, otherwise: boolean): boolean {
  if (value === undefined) return otherwise;
  if (typeof value === "boolean") return value;
  throw wrong(`${name} must be true or false`, value);
}

export function requireSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return signal;
  throw wrong("signal must be an AbortSignal", signal);
}

export interface StatsOptions {
  /** Scans instead of estimating the keys and bytes. */
  readonly exact?: boolean;
  /** Counts of all processes instead of this cache object's. */
  readonly fleet?: boolean;
  /** With `fleet`: how far back. Default: an hour. */
  readonly since?: Duration;
  /** With `exact`: stops the scan when it aborts. */
  readonly signal?: AbortSignal;
}

interface StatsRequest extends Required<Omit<StatsOptions, "signal" | "since">> {
  /** Seconds. */
  readonly since: number;
  readonly signal: AbortSignal | undefined;
}

const HOUR_SECONDS = 3_600;

export function requireStatsOptions(options: StatsOptions): StatsRequest {
  requireOptions(options, ["exact", "fleet", "since", "signal"]);
  const since = requireSince(options.since);
  return {
    exact: requireFlag(options.exact, "exact", false),
    fleet: requireFlag(options.fleet, "fleet", false),
    since,
    signal: requireSignal(options.signal),
  };
}

export interface ActivityOptions {
  /** How far back, a day at most. Default: an hour. */
  readonly since?: Duration;
}

export function requireActivityOptions(options: ActivityOptions): number {
  requireOptions(options, ["since"]);
  return requireSince(options.since);
}

function requireSince(given: unknown = HOUR_SECONDS): number {
  const since = toSeconds(given);
  if (typeof since !== "number" || !(since > 0))
    throw wrong(`since must be a number of seconds above 0, ${OR_TEXT}`, given);
  return since;
}
