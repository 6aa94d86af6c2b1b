// What the processes do and what happens to the store, drawn from a seed: the same seed gives the same plan.
import { seededRandom } from "../../src/testing/manual-clock.ts";
import type { FaultKind } from "./history.ts";

export type StoreKind = "one" | "sentinel" | "cluster";

export interface Setting {
  readonly seed: number;
  readonly seconds: number;
  readonly store: StoreKind;
  readonly near: boolean;
}

export const WORKERS = 3;

/** What a load does: it waits, reads the database, waits again and ends with some outcome. */
export interface LoadPlan {
  readonly beforeMs: number;
  readonly afterMs: number;
  readonly outcome: "value" | "skip" | "error";
  readonly lateTags: readonly string[];
  /** Set by the load; undefined: that of the call. */
  readonly ttl?: number;
}

export type ReadStep =
  | { readonly do: "get"; readonly key: string }
  | { readonly do: "getMany"; readonly keys: readonly string[] }
  | {
      readonly do: "getOrSet";
      readonly key: string;
      readonly tags: readonly string[];
      readonly load: LoadPlan;
      /** How many calls are made at the same time. */
      readonly callers: number;
      readonly hardTimeout?: number;
      readonly staleIfError?: number;
    };

export type ChangeStep =
  | { readonly do: "set"; readonly key: string; readonly tags: readonly string[] }
  | { readonly do: "delete"; readonly keys: readonly string[] }
  | { readonly do: "invalidateTags"; readonly tags: readonly string[] }
  | { readonly do: "invalidatePattern"; readonly pattern: string }
  | { readonly do: "clear" };

/** One step of a process: `afterwards` is read as soon as the change has ended, successfully or not. */
export type Step = { readonly at: number } & (ReadStep | (ChangeStep & { readonly afterwards?: ReadStep }));

export interface FaultStep {
  readonly at: number;
  readonly what: FaultKind;
  /** How long the server is frozen or down, or cut off from its replica before it dies. */
  readonly ms: number;
  /** Selects the server among several. */
  readonly lot: number;
}

export interface Plan {
  readonly workers: readonly (readonly Step[])[];
  readonly faults: readonly FaultStep[];
}

const FAMILIES = ["a", "b"];
const KEYS_EACH = 6;
const KEYS = FAMILIES.flatMap((family) => Array.from({ length: KEYS_EACH }, (_, at) => `${family}:${at}`));
/** Mean pause between the steps of a process. */
const STEP_MS = 22;
/** Changes come in bursts, so that values also live for longer than any bound. */
const BURST_MS = 1_200;
const CALM_MS = 3_300;
/** How often all processes want the same key at once, which one of them may have invalidated just before. */
const HERD_EVERY_MS = 220;
const HEAD_START_MS = 25;

const FAULTS: Readonly<Record<StoreKind, readonly FaultKind[]>> = {
  one: ["freeze", "restore", "freeze", "flush", "empty", "drop"],
  sentinel: ["failover by death", "freeze", "flush", "failover by order", "drop", "failover by freeze"],
  cluster: [
    "failover by death",
    "failover by order",
    "freeze",
    "flush",
    "failover by freeze",
    "drop",
    "empty",
  ],
};
/** The least time between the starts of two faults; a failover alone takes seconds. */
const FAULT_EVERY_MS: Readonly<Record<StoreKind, number>> = { one: 2_600, sentinel: 4_200, cluster: 4_200 };
/** The most important faults, which short runs have too: a server that is killed, frozen, failed over and flushed. */
const FOREMOST: Readonly<Record<StoreKind, readonly RegExp[]>> = {
  one: [/^restore/, /^freeze/],
  sentinel: [/^failover by death/, /^flush/],
  cluster: [/^failover/, /^flush/],
};
/** The age of a snapshot when it is restored. */
const SNAPSHOT_AGE_MS = 900;
/** When the first fault begins; before it, nothing excuses a violation. */
const FIRST_MS = 2_500;
/** No fault begins later than this before the end, so that the recovery of the store is seen. */
export const LAST_MS = 5_000;

export function planOf({ seed, seconds, store }: Setting): Plan {
  const lengthMs = seconds * 1_000;
  const common = new Drawing(seed * 31);
  const faults = common.faults(store, lengthMs);
  const herds = common.herds(lengthMs);
  const workers = Array.from({ length: WORKERS }, (_, worker) =>
    [...herds[worker]!, ...new Drawing(seed * 31 + worker + 1).steps(lengthMs, faults)].sort(
      (one, other) => one.at - other.at,
    ),
  );
  return { workers, faults };
}

/** The interesting changes are those that a fault may lose: made since a snapshot, or never answered. */
const isTrying = (at: number, faults: readonly FaultStep[]): boolean =>
  faults.some((fault) =>
    fault.what === "restore"
      ? at > fault.at - SNAPSHOT_AGE_MS && at < fault.at
      : at > fault.at && at < fault.at + fault.ms,
  );

class Drawing {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  steps(lengthMs: number, faults: readonly FaultStep[]): Step[] {
    const steps: Step[] = [];
    for (let at = this.#upTo(STEP_MS); at < lengthMs; at += this.#upTo(2 * STEP_MS)) {
      const isBurst = at % (CALM_MS + BURST_MS) > CALM_MS || isTrying(at, faults);
      steps.push({ at, ...(this.#random() < (isBurst ? 0.2 : 0.02) ? this.#change() : this.#read()) });
    }
    return steps;
  }

  /** The steps of each process. */
  herds(lengthMs: number): Step[][] {
    const herds: Step[][] = Array.from({ length: WORKERS }, () => []);
    for (let at = HERD_EVERY_MS; at < lengthMs; at += this.#upTo(2 * HERD_EVERY_MS)) {
      const key = this.#one(KEYS);
      const leader = herds[Math.floor(this.#random() * WORKERS)] as Step[];
      if (this.#random() < 0.4) leader.push({ at: at - HEAD_START_MS, do: "delete", keys: [key] });
      for (const steps of herds) steps.push({ at: at + this.#upTo(5), ...this.#getOrSet(key) });
    }
    return herds;
  }

  faults(store: StoreKind, lengthMs: number): FaultStep[] {
    const faults: FaultStep[] = [];
    let left: FaultKind[] = [];
    let count = 0;
    const every = FAULT_EVERY_MS[store];
    for (let at = FIRST_MS + this.#upTo(800); at < lengthMs - LAST_MS; at += every + this.#upTo(every / 2)) {
      if (left.length === 0) left = this.#shuffled(FAULTS[store]);
      const foremost = FOREMOST[store][count++];
      const chosen = foremost === undefined ? -1 : left.findIndex((kind) => foremost.test(kind));
      const [what] = left.splice(chosen, 1) as [FaultKind];
      if (what === "restore") faults.push({ at: at - SNAPSHOT_AGE_MS, what: "save", ms: 0, lot: 0 });
      faults.push({ at, what, ms: this.#faultMs(what), lot: this.#random() });
    }
    return faults;
  }

  #faultMs(what: FaultKind): number {
    // Mostly longer than a call waits, so that the circuit opens and nothing more is sent.
    if (what === "freeze") return this.#random() < 0.2 ? 200 : 900 + this.#upTo(900);
    if (what === "failover by death") return this.#random() < 0.2 ? 0 : 300 + this.#upTo(500);
    return this.#upTo(400);
  }

  #read(): ReadStep {
    const lot = this.#random();
    if (lot < 0.35) return { do: "get", key: this.#one(KEYS) };
    if (lot < 0.45) return { do: "getMany", keys: this.#some(KEYS) };
    return this.#getOrSet(this.#one(KEYS));
  }

  #change(): ChangeStep & { readonly afterwards?: ReadStep } {
    const change = this.#bareChange();
    if (this.#random() < 0.2) return change;
    const key = this.#concerned(change);
    return { ...change, afterwards: this.#random() < 0.5 ? { do: "get", key } : this.#getOrSet(key) };
  }

  #bareChange(): ChangeStep {
    const lot = this.#random();
    const key = this.#one(KEYS);
    if (lot < 0.2) return { do: "set", key, tags: this.#tags(key) };
    if (lot < 0.45) return { do: "delete", keys: this.#random() < 0.8 ? [key] : this.#some(KEYS) };
    if (lot < 0.65) return { do: "invalidateTags", tags: [ownTag(key)] };
    if (lot < 0.72) return { do: "invalidateTags", tags: [familyTag(key)] };
    if (lot < 0.88) return { do: "invalidateTags", tags: [lateTag(key)] };
    if (lot < 0.95) return { do: "invalidatePattern", pattern: this.#random() < 0.5 ? key : `${key[0]}:*` };
    return { do: "clear" };
  }

  #concerned(change: ChangeStep): string {
    if (change.do === "set") return change.key;
    if (change.do === "delete") return this.#one(change.keys);
    const matching = KEYS.filter((key) => {
      if (change.do === "invalidateTags")
        return [ownTag(key), familyTag(key), lateTag(key)].some((tag) => change.tags.includes(tag));
      return change.do === "clear" || matches(change.pattern, key);
    });
    return this.#one(matching);
  }

  #getOrSet(key: string): ReadStep {
    const load = this.#load(key);
    const isSlow = load.beforeMs + load.afterMs > 200;
    return {
      do: "getOrSet",
      key,
      tags: this.#tags(key),
      load,
      callers: this.#random() < 0.7 ? 1 : 2 + this.#upTo(3),
      ...(isSlow && this.#random() < 0.7 ? { hardTimeout: 0.15 } : {}),
      ...(this.#random() < 0.1 ? { staleIfError: 5 } : {}),
    };
  }

  #load(key: string): LoadPlan {
    const lot = this.#random();
    const [beforeMs, afterMs] =
      lot < 0.7 ? [this.#upTo(10), this.#upTo(40)] : [this.#upTo(100), this.#slowMs(lot)];
    const ending = this.#random();
    return {
      beforeMs,
      afterMs,
      outcome: ending < 0.06 ? "error" : ending < 0.12 ? "skip" : "value",
      lateTags: this.#random() < 0.4 ? [lateTag(key)] : [],
      ...(this.#random() < 0.1 ? { ttl: 0.2 + this.#upTo(1_000) / 1_000 } : {}),
    };
  }

  #slowMs(lot: number): number {
    if (lot < 0.85) return 50 + this.#upTo(250);
    return lot < 0.97 ? 300 + this.#upTo(700) : 1_000 + this.#upTo(1_500);
  }

  #tags(key: string): readonly string[] {
    return [ownTag(key), familyTag(key)];
  }

  /** A whole number from 0 to `most`. */
  #upTo(most: number): number {
    return Math.floor(this.#random() * (most + 1));
  }

  #one<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }

  #some<T>(list: readonly T[]): T[] {
    return this.#shuffled(list).slice(0, 2 + this.#upTo(4));
  }

  #shuffled<T>(list: readonly T[]): T[] {
    return list
      .map((item) => ({ item, lot: this.#random() }))
      .sort((one, other) => one.lot - other.lot)
      .map(({ item }) => item);
  }
}

const ownTag = (key: string): string => `own ${key}`;
const familyTag = (key: string): string => `family ${key[0]}`;
const lateTag = (key: string): string => `late ${key}`;

/** Whether a pattern of a plan, a key or a family, means this key. */
export function matches(pattern: string, key: string): boolean {
  return pattern.endsWith("*") ? key.startsWith(pattern.slice(0, -1)) : pattern === key;
}
