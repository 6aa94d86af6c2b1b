// Counts of a wrapped function: `cached` makes them together with the cache, which alone knows how a call was answered.
import type { GetOrSetOptions } from "./options.ts";

export interface FunctionRecord {
  calls: number;
  /** Calls that found no fresh value. */
  missed: number;
  /** Of those: answered by a load that another call had started. */
  coalesced: number;
  /** Of those: answered by a stale value. */
  stale: number;
  /** Of the latest load. */
  ttlMs: number;
  /** Starts timing a run of the function; pass the result to `loaded`. */
  begin(): number;
  loaded(startedAt: number, hasFailed: boolean): void;
}

/** For an object that only implements the interface of a cache. */
const uncounted: FunctionRecord = {
  calls: 0,
  missed: 0,
  coalesced: 0,
  stale: 0,
  ttlMs: 0,
  begin: () => 0,
  loaded: () => {},
};

type RecordSource = (name: string) => FunctionRecord;

const sources = new WeakMap<object, RecordSource>();

export function offerFunctionRecords(cache: object, source: RecordSource): void {
  sources.set(cache, source);
}

export function functionRecordIn(cache: object, name: string): FunctionRecord {
  return sources.get(cache)?.(name) ?? uncounted;
}

/** Part of the options that a wrapped function passes to getOrSet. Being a symbol, it is no option that a caller can see. */
const CALLER = Symbol("the wrapped function");

interface Caller {
  readonly record: FunctionRecord;
  /** Options that were checked when the function was wrapped, so that a hit need not check them. */
  readonly checked: GetOrSetOptions;
}

interface CallerOptions extends GetOrSetOptions {
  [CALLER]?: Caller;
}

/** The options of every call of a function, which were checked when it was wrapped. */
export function optionsOfCalls(
  record: FunctionRecord,
  checked: GetOrSetOptions | undefined,
): GetOrSetOptions | undefined {
  if (record === uncounted) return checked;
  const options: CallerOptions = { ...checked };
  options[CALLER] = { record, checked: options };
  return options;
}

/** The record of the wrapped function that calls; undefined for any other caller. */
export const callerIn = (options: GetOrSetOptions | undefined): FunctionRecord | undefined =>
  (options as CallerOptions | undefined)?.[CALLER]?.record;

/** Whether these very options were checked before; a copy of them may have been changed. */
export const areChecked = (options: GetOrSetOptions): boolean =>
  (options as CallerOptions | null)?.[CALLER]?.checked === options;
