// The faults of a ChaosBackend: requested ones in order, then random ones.
import type { Backend } from "../core/backend.ts";
import { ConnectionError } from "../core/errors.ts";
import { requireChances, requireChoice, requireSpan, requireTimes } from "./test-arguments.ts";

/** The backend methods that faults apply to. Each batch of a scan counts as one call of `scan`. */
export type ChaosOperation = Extract<
  keyof Backend,
  | ("connect" | "disconnect" | "ping" | "read" | "readMany" | "write" | "writeMany")
  | ("swap" | "take" | "takeMany" | "touch" | "scan" | "usage" | "memoryUsage")
>;

export type ChaosTarget = ChaosOperation | "all";

const TARGETS: Readonly<Record<ChaosTarget, true>> = {
  all: true,
  connect: true,
  disconnect: true,
  ping: true,
  read: true,
  readMany: true,
  write: true,
  writeMany: true,
  swap: true,
  take: true,
  takeMany: true,
  touch: true,
  scan: true,
  usage: true,
  memoryUsage: true,
};

export function requireTarget(target: unknown): void {
  requireChoice("the operation", target, Object.keys(TARGETS));
}

/** The fate of one call. `before`: it does not reach the store. `after`: it does, but its reply is lost. */
export interface Fault {
  readonly when: "before" | "after";
  /** Undefined: the call hangs until `resume`. */
  readonly error: Error | undefined;
}

/** Probabilities per call, from 0 to 1; `drop` and `lose` together at most 1. */
export interface ChaosChances {
  /** The call fails without reaching the store. */
  readonly drop?: number;
  /** The call is executed but its reply is lost: it rejects and the outcome is unknown. */
  readonly lose?: number;
  /** Every call is delayed by a random time up to this many milliseconds. */
  readonly delayMs?: number;
}

interface Rule {
  readonly target: ChaosTarget;
  readonly fault: Fault;
  left: number;
}

export class ChaosScript {
  readonly seed: number;
  readonly #random: () => number;
  #rules: Rule[] = [];
  #chances: ChaosChances = {};
  #delayOf: (operation: ChaosOperation) => number = () => 0;

  constructor(seed: number, random: () => number) {
    this.seed = seed;
    this.#random = random;
  }

  add(target: ChaosTarget, fault: Fault, times: number): void {
    requireTarget(target);
    if (requireTimes(times) > 0) this.#rules.push({ target, fault, left: times });
  }

  delays(delayOf: (operation: ChaosOperation) => number): void {
    this.#delayOf = (operation) => requireSpan("a delay", delayOf(operation));
  }

  chances(chances: ChaosChances): void {
    this.#chances = requireChances(chances);
  }

  clear(): void {
    this.#rules = [];
    this.#chances = {};
    this.#delayOf = () => 0;
  }

  /** Delay of the next call of `operation`. */
  delayMs(operation: ChaosOperation): number {
    const { delayMs } = this.#chances;
    return this.#delayOf(operation) + (delayMs === undefined ? 0 : this.#random() * delayMs);
  }

  /** The fault for the next call of `operation`, if any. Requested faults take precedence over random ones. */
  fault(operation: ChaosOperation, call: number): Fault | undefined {
    const rule = this.#rules.find(({ target }) => target === "all" || target === operation);
    if (rule !== undefined) {
      rule.left--;
      if (rule.left <= 0) this.#rules.splice(this.#rules.indexOf(rule), 1);
      return rule.fault;
    }
    const { drop = 0, lose = 0 } = this.#chances;
    if (drop + lose === 0) return undefined;
    const draw = this.#random();
    const randomFault = (what: string): Error =>
      lostConnection(`${what} by chance (seed ${this.seed}, call ${call})`);
    if (draw < drop) return { when: "before", error: randomFault(`${operation} was dropped`) };
    if (draw < drop + lose)
      return { when: "after", error: randomFault(`the reply to ${operation} was lost`) };
    return undefined;
  }
}

export function lostConnection(what: string): ConnectionError {
  return new ConnectionError(`chaos: ${what}`);
}
