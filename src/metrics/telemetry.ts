// What happens to one cache object, counted and told: every operation passes here.
import type { Clock } from "../core/clock.ts";
import { Emitter, toError } from "../core/events.ts";
import type { Space, StoreObserver } from "../core/space.ts";
import { type OperationRecord, Recorder } from "./recorder.ts";

/** One call in so many is timed; the counts are exact. A prime, so that no regular pattern of calls hides one from it. */
const TIMED_EVERY = 127;

export class Telemetry {
  readonly events = new Emitter();
  readonly recorder: Recorder;
  /** Also counts getOrSet's hits: for the store they are the same. */
  readonly gets: OperationRecord;
  /** Whether the next get is one to be timed: a hit should cost no more than to ask this. */
  timesNextGet = true;
  #sets: OperationRecord | undefined;
  readonly #clock: Clock;
  #untilTimed = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.recorder = new Recorder(clock);
    this.gets = this.recorder.operation("get");
  }

  /** The hit path: nothing is allocated without a listener. */
  hit(key: string): void {
    this.countGet();
    this.recorder.hits++;
    if (this.events.on.hit !== undefined) this.events.emit("hit", { key });
  }

  countGet(): void {
    if (++this.gets.count % TIMED_EVERY === 0) this.timesNextGet = true;
  }

  looked(key: string, hit: boolean): void {
    if (hit) this.recorder.hits++;
    else this.recorder.misses++;
    const event = hit ? "hit" : "miss";
    if (this.events.on[event] !== undefined) this.events.emit(event, { key });
  }

  /** A key that is asked for twice counts once. */
  lookedMany(keys: readonly string[], found: ReadonlyMap<string, unknown>): void {
    this.recorder.hits += found.size;
    const { hit, miss } = this.events.on;
    if (found.size === keys.length && hit === undefined) return;
    const distinct = new Set(keys);
    this.recorder.misses += distinct.size - found.size;
    if (hit === undefined && miss === undefined) return;
    for (const key of distinct) this.events.emit(found.has(key) ? "hit" : "miss", { key });
  }

  wrote(key: string, tags: readonly string[]): void {
    this.recorder.sets++;
    if (this.events.on.set !== undefined) this.events.emit("set", { key, tags });
  }

  /** Listeners are told of every key; counted are those that were there. */
  deleted(keys: readonly string[], present: number = keys.length): void {
    this.recorder.deletes += present;
    if (this.events.on.delete !== undefined) for (const key of keys) this.events.emit("delete", { key });
  }

  invalidated(what: {
    readonly tags?: readonly string[];
    readonly pattern?: string;
    readonly all?: true;
  }): void {
    this.recorder.invalidations++;
    this.events.emit("invalidate", what);
  }

  /** When this call is one to be timed: the moment it began. Give it to `finish`. */
  start(): number | undefined {
    if (--this.#untilTimed > 0) return undefined;
    this.#untilTimed = TIMED_EVERY;
    return this.#clock.now();
  }

  finish(operation: string, started: number | undefined): void {
    this.recorder.operation(operation).count++;
    if (started !== undefined) this.time(operation, started);
  }

  /** `finish` of a set: its record is at hand, because it is done so often. */
  finishSet(started: number | undefined): void {
    this.#sets ??= this.recorder.operation("set");
    this.#sets.count++;
    if (started !== undefined) this.time("set", started);
  }

  time(operation: string, started: number): void {
    this.recorder.operation(operation).latency.add((this.#clock.now() - started) / 1000);
  }

  /** Runs a direct operation; its error is counted and thrown. */
  async run<T>(operation: string, work: () => T | Promise<T>): Promise<T> {
    const started = this.start();
    try {
      return await work();
    } catch (error) {
      throw this.failedCall(operation, error);
    } finally {
      this.finish(operation, started);
    }
  }

  /** Counts an error that its caller will see. */
  failedCall(operation: string, thrown: unknown): Error {
    const error = toError(thrown);
    this.recorder.failed(operation, error);
    return error;
  }

  /** Counts an error that no caller sees, and tells the listeners. */
  failed(operation: string, error: Error): void {
    this.recorder.failed(operation, error);
    this.events.emit("error", { error, operation });
  }

  connection(state: "connected" | "disconnected"): void {
    this.events.emit("state", { what: "connection", state });
  }

  /** What the store tells about this namespace; `space` lets a store find whom to tell without asking everybody. */
  observer(mine: Space): StoreObserver & { readonly space: Space } {
    return {
      space: mine,
      failed: (error) => this.failed("background", error),
      breakerChanged: (state) => this.events.emit("state", { what: "circuit_breaker", state }),
      evicted: (space, key) => {
        if (space !== mine) return;
        this.recorder.evictions++;
        if (this.events.on.evict !== undefined) this.events.emit("evict", { key });
      },
    };
  }
}
