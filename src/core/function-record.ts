// Counts of a wrapped function: `cached` makes them together with the cache, which alone knows how a call was answered.

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

// Passed beside the arguments of getOrSet, which are public: set right before the call, and taken by it synchronously.
let calling: FunctionRecord | undefined;

export function beginCall(record: FunctionRecord): void {
  calling = record;
}

export function endCall(): void {
  calling = undefined;
}

/** The function that calls the cache right now; a second call gets undefined. */
export function takeCalling(): FunctionRecord | undefined {
  const record = calling;
  calling = undefined;
  return record;
}
