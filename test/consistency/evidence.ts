// What a history shows about a run, prepared for the rules: where values came from, what changed when, what was down.
import type { Call, FaultRun, History, LoadRun } from "./history.ts";
import { matches } from "./plan.ts";

/** The configured deadline of a store operation in the runs. */
export const OPERATION_TIMEOUT_MS = 500;
/** What a busy machine of two cores may add to any call, besides the measured lag. */
export const SLACK_MS = 1_500;
/** Another process's change is noticed within about a second (api.md, 4.2), and half of one more on a busy machine. */
export const NOTICE_MS = 1_500;
/** A process reaches its store again within this time: retry pauses grow to two seconds, the breaker adds its own. */
export const RESUME_MS = 5_000;
/** The interval at which a process delivers pending invalidations, whatever else it does. */
const UPKEEP_MS = 5_000;
/** From asking the store for its stamps and a lease to the beginning of the load. */
const ADMISSION_MS = 250;
/** A change acknowledged this long before a failover has reached the replica. */
const REPLICATION_MS = 30_000;

/** Where a value came from. */
export interface Source {
  readonly id: string;
  readonly key: string;
  readonly worker: number;
  readonly tags: readonly string[];
  readonly load?: LoadRun;
  readonly set?: Call;
}

/** One violation of a guarantee of api.md, section 4. */
export interface Violation {
  /** The number of the guarantee. */
  readonly guarantee: 1 | 2 | 3 | 4 | 5 | 6;
  readonly message: string;
  readonly key?: string | undefined;
  /** The part of the history that shows it. */
  readonly from: number;
  readonly to: number;
}

export class Evidence {
  readonly history: History;
  readonly sources = new Map<string, Source>();
  /** Everything that changes or invalidates something, in the order it began. */
  readonly changes: readonly Call[];
  /** Without snapshots, which are not faults. */
  readonly faults: readonly FaultRun[];
  readonly #probes: ReadonlyMap<number, ReadonlyMap<string, readonly Call[]>>;
  /** When each call began. */
  readonly #starts: ReadonlyMap<string, number>;
  readonly #answers: ReadonlyMap<number, readonly Call[]>;
  /** Reads of entries, answered by the store or by a coherent near copy. */
  readonly #reads: ReadonlyMap<number, readonly Call[]>;
  readonly #settled = new Map<string, number>();

  constructor(history: History) {
    this.history = history;
    this.changes = history.calls.filter((call) => isChange(call) && !call.probe);
    this.faults = history.faults.filter(({ what }) => what !== "save");
    for (const load of history.loads) {
      const { id, key, worker, tags } = load;
      this.sources.set(id, { id, key, worker, tags, load });
    }
    for (const set of history.calls) {
      const [key] = set.keys ?? [];
      if (set.operation !== "set" || key === undefined) continue;
      this.sources.set(set.id, { id: set.id, key, worker: set.worker, tags: set.tags ?? [], set });
    }
    this.#starts = new Map(history.calls.map(({ id, start }) => [id, start]));
    const answered = history.calls.filter(({ failure }) => failure === undefined);
    const reads = answered.filter(({ operation }) => operation === "get" || operation === "getMany");
    this.#reads = grouped(reads, ({ worker }) => worker);
    this.#answers = grouped(answered.filter(isChange), ({ worker }) => worker);
    const probes = grouped(
      history.calls.filter(({ probe }) => probe === true),
      ({ worker }) => worker,
    );
    this.#probes = new Map(
      [...probes].map(([worker, calls]) => [worker, grouped(calls, ({ keys }) => keys?.[0] ?? "")]),
    );
  }

  /** For how long the event loop of a process stood still between two moments. */
  lag(worker: number, from: number, to: number): number {
    let sum = 0;
    for (const lag of this.history.lags) {
      if (lag.worker === worker) sum += Math.max(0, Math.min(lag.end, to) - Math.max(lag.start, from));
    }
    return sum;
  }

  /** Whether a process asked the store anything just to see whether it answers. */
  hasProbes(worker: number): boolean {
    return this.#probes.has(worker);
  }

  /** When every server of the store had answered a process again that asked after a moment; Infinity: never. */
  resumedAt(worker: number, after: number): number {
    const firsts = [...(this.#probes.get(worker)?.values() ?? [])].map(
      (calls) => calls.find(({ start, failure }) => start >= after && failure === undefined)?.end,
    );
    if (firsts.length === 0) return Number.POSITIVE_INFINITY;
    return Math.max(...firsts.map((end) => end ?? Number.POSITIVE_INFINITY));
  }

  /** When a process last asked the store just to see whether it answers. */
  lastProbe(worker: number): number {
    const probes = [...(this.#probes.get(worker)?.values() ?? [])].flat();
    return Math.max(...probes.map(({ start }) => start));
  }

  /** Until when a fault explains what a process sees or does. */
  endOfFault({ healed }: FaultRun, worker: number): number {
    return Math.min(this.resumedAt(worker, healed), healed + RESUME_MS) + NOTICE_MS;
  }

  /**
   * When a change with an unknown outcome has taken effect for a key: its process delivers it once the store answers, and
   * before it serves an affected entry.
   */
  settledBy(change: Call, key: string): number {
    if (change.failure === undefined) return change.end;
    const name = `${change.id} ${key}`;
    let settled = this.#settled.get(name);
    if (settled === undefined) {
      const back = this.#answers.get(change.worker)?.find(({ start }) => start >= change.end);
      const served = this.#reads
        .get(change.worker)
        ?.find((read) => read.start >= change.end && this.#isServed(read, change, key));
      const delivered = (back?.end ?? Number.POSITIVE_INFINITY) + UPKEEP_MS + OPERATION_TIMEOUT_MS + SLACK_MS;
      settled = Math.min(delivered, served?.end ?? Number.POSITIVE_INFINITY);
      this.#settled.set(name, settled);
    }
    return settled;
  }

  /** Whether a read concerned the changed key, or returned a value that the change invalidates. */
  #isServed(read: Call, change: Call, key: string): boolean {
    if (change.operation === "set" || change.operation === "delete") return read.keys?.includes(key) === true;
    return (read.values ?? []).some(({ id }) => {
      const source = this.sources.get(id);
      return source !== undefined && isConcerned(change, source);
    });
  }

  /**
   * Whether a server that took over without a change explains that another process does not see it: until the
   * process that made the change has met that server and repeated it.
   */
  isLost(change: Call, seenAt: number): boolean {
    return this.faults.some((fault) => {
      if (!fault.mayLose || change.end < fault.start - REPLICATION_MS || seenAt < fault.start) return false;
      const repeated = this.endOfFault(fault, change.worker);
      return change.end <= repeated && seenAt <= repeated;
    });
  }

  /** Why a load, or the value it stored, may be void at a moment; undefined: it cannot be. */
  whyVoid(load: LoadRun, until: number, others: readonly number[] = []): string | undefined {
    // Tags named late, with which others may collide, count only when the load stores.
    const isLate = load.hasLateTags && until >= load.end;
    const change = this.changes.find(
      (call) =>
        (isConcerned(call, load) || (isLate && call.operation === "invalidateTags")) &&
        call.start <= until &&
        this.#countsUntil(call, load) >= this.#askedAt(load),
    );
    if (change !== undefined) return `${change.operation} ${change.id}`;
    const fault = this.faults.find(
      (each) => each.start <= until && this.#endForAll(each) >= load.start - OPERATION_TIMEOUT_MS,
    );
    if (fault !== undefined) return fault.what;
    const trouble = this.history.troubles.find(
      ({ worker, at }) =>
        (worker === load.worker || others.includes(worker)) &&
        at >= load.start - OPERATION_TIMEOUT_MS &&
        at <= until,
    );
    return trouble?.code;
  }

  /** From when on a change voids this load: it is sealed with stamps that were read shortly before. */
  #askedAt(load: LoadRun): number {
    return Math.max(load.start - ADMISSION_MS, this.#starts.get(load.call) ?? Number.NEGATIVE_INFINITY);
  }

  /**
   * Until when a starting load may not yet know of a change. A key is read from the store; the stamps of tags and
   * namespaces are cached locally, and a process learns of another one's change by push.
   */
  #countsUntil(change: Call, { worker, key }: LoadRun): number {
    const isByStamp = change.operation === "invalidateTags" || change.operation === "clear";
    return this.settledBy(change, key) + (isByStamp && change.worker !== worker ? NOTICE_MS : 0);
  }

  /** A process that meets another server than before verifies its data before using it. */
  #endForAll(fault: FaultRun): number {
    const { healed } = fault;
    const ends = Array.from({ length: this.history.workers }, (_, worker) => this.resumedAt(worker, healed));
    return Math.min(Math.max(...ends), healed + RESUME_MS);
  }
}

const CHANGING: readonly Call["operation"][] = [
  "set",
  "delete",
  "invalidateTags",
  "invalidatePattern",
  "clear",
];

const isChange = ({ operation }: Call): boolean => CHANGING.includes(operation);

/** Whether a change affects values from this source, regardless of time. */
export function isConcerned(change: Call, { key, tags }: Pick<Source, "key" | "tags">): boolean {
  switch (change.operation) {
    case "clear":
      return true;
    case "invalidateTags":
      return change.tags?.some((tag) => tags.includes(tag)) === true;
    case "invalidatePattern":
      return matches(change.pattern ?? "", key);
    default:
      return change.keys?.includes(key) === true;
  }
}

export function grouped<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
