// What happened in one run: every call, load and fault, timed by a clock that all processes share.
//
// There is no database to read: a load notes when it would have read it. Values read before an invalidation began are
// the ones that it invalidates. Times are milliseconds since the run began.

/** What the workers store: a value names the load or set it came from. */
export interface Value {
  readonly id: string;
  readonly key: string;
}

export type Operation =
  | "get"
  | "getMany"
  | "getOrSet"
  | "set"
  | "delete"
  | "invalidateTags"
  | "invalidatePattern"
  | "clear";

/** How a call failed: with the error of a load, or with a code of the library. */
export interface Failure {
  readonly code: string;
  /** The load whose error it is. */
  readonly load?: string;
  /** Whether it is the same object that the load threw. */
  readonly same?: boolean;
}

/** A call of a cache operation by one process. */
export interface Call {
  readonly kind: "call";
  readonly id: string;
  readonly worker: number;
  readonly operation: Operation;
  readonly start: number;
  readonly end: number;
  /** The keys it named, one or several. */
  readonly keys?: readonly string[];
  /** For invalidateTags, the tags it invalidates; for set, the tags of the value. */
  readonly tags?: readonly string[];
  readonly pattern?: string;
  /** What it returned to its caller. */
  readonly values?: readonly Value[];
  readonly failure?: Failure;
  readonly hardTimeoutMs?: number;
  /** Made only to check whether the store answers. */
  readonly probe?: boolean;
}

/** A load that ran, by the function of one call. */
export interface LoadRun {
  readonly kind: "load";
  readonly id: string;
  readonly worker: number;
  /** Whose function ran. */
  readonly call: string;
  readonly key: string;
  /** All tags the value got, those named late included. */
  readonly tags: readonly string[];
  readonly hasLateTags: boolean;
  readonly ttlMs: number;
  readonly start: number;
  /** When it read the database. */
  readonly at: number;
  readonly end: number;
  readonly outcome: "value" | "skip" | "error";
}

/** The store failed, and the process continued without it. */
export interface Trouble {
  readonly kind: "trouble";
  readonly worker: number;
  readonly at: number;
  readonly code: string;
}

/** The event loop of a process stood still. */
export interface Lag {
  readonly kind: "lag";
  readonly worker: number;
  readonly start: number;
  readonly end: number;
}

export type FaultKind =
  | "save"
  | "freeze"
  | "restore"
  | "empty"
  | "flush"
  | "drop"
  | "failover by death"
  | "failover by freeze"
  | "failover by order";

export interface FaultRun {
  readonly kind: "fault";
  readonly what: FaultKind;
  readonly start: number;
  /** When the store accepted commands again. */
  readonly healed: number;
  /** A server without the latest acknowledged writes may have taken over. */
  readonly mayLose: boolean;
}

export type HistoryRecord = Call | LoadRun | Trouble | Lag | FaultRun;

export interface History {
  readonly workers: number;
  readonly calls: readonly Call[];
  readonly loads: readonly LoadRun[];
  readonly troubles: readonly Trouble[];
  readonly lags: readonly Lag[];
  readonly faults: readonly FaultRun[];
}

export function historyOf(workers: number, records: readonly HistoryRecord[]): History {
  const of = <K extends HistoryRecord["kind"]>(kind: K) =>
    records
      .filter((record): record is Extract<HistoryRecord, { kind: K }> => record.kind === kind)
      .sort((one, other) => beginningOf(one) - beginningOf(other));
  return {
    workers,
    calls: of("call"),
    loads: of("load"),
    troubles: of("trouble"),
    lags: of("lag"),
    faults: of("fault"),
  };
}

const beginningOf = (record: HistoryRecord): number => ("start" in record ? record.start : record.at);
const endOf = (record: HistoryRecord): number =>
  record.kind === "trouble" ? record.at : record.kind === "fault" ? record.healed : record.end;

/** The records about a key, and those that concern every key, between two moments, one per line. */
export function slice(history: History, key: string | undefined, from: number, to: number): string {
  const { calls, loads, troubles, lags, faults } = history;
  const records: HistoryRecord[] = [
    ...calls.filter((call) => !call.probe && isAbout(call, key)),
    ...loads.filter((load) => key === undefined || load.key === key),
    ...gathered(troubles),
    ...lags,
    ...faults,
  ];
  return records
    .filter((record) => endOf(record) >= from && beginningOf(record) <= to)
    .sort((one, other) => beginningOf(one) - beginningOf(other))
    .map(describe)
    .join("\n");
}

/** A failing store fails a process many times in a moment; one record of them is enough. */
function gathered(troubles: readonly Trouble[]): Trouble[] {
  const last = new Map<string, number>();
  return troubles.filter(({ worker, code, at }) => {
    const name = `${worker} ${code}`;
    const before = last.get(name);
    last.set(name, at);
    return before === undefined || at - before > 100;
  });
}

const isAbout = (call: Call, key: string | undefined): boolean =>
  key === undefined || call.keys === undefined || call.keys.includes(key);

function describe(record: HistoryRecord): string {
  const { kind, ...rest } = record;
  const moments = `${beginningOf(record).toFixed(1)}..${endOf(record).toFixed(1)}`;
  const facts = Object.entries(rest).filter(([name]) => !["start", "end", "healed"].includes(name));
  return `${moments} ${kind} ${facts.map(([name, value]) => `${name}=${show(value)}`).join(" ")}`;
}

const show = (value: unknown): string =>
  typeof value === "number" ? String(Math.round(value * 10) / 10) : JSON.stringify(value);
