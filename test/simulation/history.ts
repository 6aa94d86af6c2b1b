// What happened in a schedule, as the checker reads it.
import type { Violation } from "./checker.ts";
import type { Operation } from "./operations.ts";

/** A point in a schedule. */
export interface Moment {
  /** Unique and increasing. */
  readonly tick: number;
  /** Simulated milliseconds since the beginning. */
  readonly time: number;
  /** How many commands the servers had executed. */
  readonly sequence: number;
}

/** One call of an operation. Values are the ids of what produced them. */
export interface Call {
  readonly id: string;
  readonly process: number;
  readonly operation: Operation;
  readonly start: Moment;
  /** Which of the earlier calls' outcomes this process had certainly heard of: the highest sequence number. */
  readonly heard: number;
  end: Moment | undefined;
  value: string | undefined;
  error: Error | undefined;
  /** The store could be reached when it began. */
  readonly isReachable: boolean;
  /** Its process was connected when it began, and nothing had failed since. */
  readonly isUp: boolean;
  /** For how long the process was frozen meanwhile. */
  frozenMs: number;
}

/** One run of a load function. */
export interface LoadRun {
  readonly id: string;
  readonly process: number;
  readonly call: Call;
  readonly key: string;
  readonly namespace: string;
  readonly tags: readonly string[];
  readonly start: Moment;
  readonly heard: number;
  /** The version of the lease that was in the store; the first load with it holds it. */
  readonly lease: string | undefined;
  /** What it got as `context.stale`. */
  readonly stale: string | undefined;
  end: Moment | undefined;
  outcome: "value" | "error" | "skip" | "undefined" | undefined;
  error: Error | undefined;
}

/** Something that was done to the store, the network or a process. */
export interface Fault {
  readonly at: Moment;
  readonly what: string;
  readonly process?: number;
  /** Acknowledged writes may be gone. */
  readonly loses?: boolean;
}

/** A process has learned that a lease is in the way of its own. */
export interface Sighting {
  readonly process: number;
  /** The version of the lease. */
  readonly lease: string;
  /** Which of the executed commands met it. */
  readonly sequence: number;
  readonly at: Moment;
}

/** A process may have got the lease of a key. */
export interface LeaseWrite {
  readonly process: number;
  readonly spelled: string;
  readonly at: Moment;
}

/** Where a value came from. */
export interface Source {
  readonly id: string;
  readonly process: number;
  readonly key: string;
  readonly namespace: string;
  readonly tags: readonly string[];
  /** The value was certainly determined by then. */
  readonly determined: Moment | undefined;
  readonly load?: LoadRun;
  readonly set?: Call;
}

export class History {
  readonly calls: Call[] = [];
  readonly loads: LoadRun[] = [];
  readonly faults: Fault[] = [];
  readonly sightings: Sighting[] = [];
  readonly leaseWrites: LeaseWrite[] = [];
  /** Violations that are noticed as they happen. */
  readonly observed: Violation[] = [];
  /** From then on nothing goes wrong any more, and until then everything is delivered. */
  healed: Moment | undefined;
  end: Moment | undefined;

  source(id: string): Source | undefined {
    const load = this.loads.find((each) => each.id === id);
    if (load !== undefined) {
      const { process, key, namespace, tags } = load;
      return { id, process, key, namespace, tags, determined: load.start, load };
    }
    const set = this.calls.find((call) => call.id === id);
    if (set?.operation.do !== "set") return undefined;
    const { key, namespace, tags } = set.operation;
    // Until it has ended it may take effect at any time.
    return { id, process: set.process, key, namespace, tags, determined: set.end, set };
  }
}
