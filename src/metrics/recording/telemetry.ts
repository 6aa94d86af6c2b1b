// What happens to one cache object, counted and told: every operation passes here.
import type { Clock } from "../../core/clock.ts";
import { Emitter, toError } from "../../core/events.ts";
import type { Namespace, StoreObserver, WriteObserver } from "../../core/namespace.ts";
import { isTraced, type TraceDetails, traced } from "../tracing.ts";
import type { OperationRecord, Timing } from "./operation-record.ts";
import { Recorder } from "./recorder.ts";

export class Telemetry implements WriteObserver {
  readonly events = new Emitter();
  readonly recorder: Recorder;
  /** Also counts getOrSet's hits: for the store they are the same. */
  readonly gets: OperationRecord;
  /** At hand like `gets`, because they are so many. */
  readonly sets: OperationRecord;
  readonly #clock: Clock;
  readonly #prefix: string;

  /** `prefix` names the cache to those who trace it. */
  constructor(clock: Clock, prefix = "") {
    this.#clock = clock;
    this.#prefix = prefix;
    this.recorder = new Recorder(clock);
    this.gets = this.recorder.operation("get");
    this.sets = this.recorder.operation("set");
  }

  /** The hit path: nothing is allocated without a listener. */
  hit(key: string): void {
    this.gets.add();
    this.recorder.hits++;
    if (this.recorder.isAwaited) this.recorder.wake();
    if (this.events.on.hit !== undefined) this.events.emit("hit", { key });
  }

  /** A hit of a get that the store was asked for. */
  storeHit(key: string): void {
    this.recorder.storeHits++;
    this.hit(key);
  }

  /** What asking the store gave. */
  looked(key: string, hit: boolean): void {
    const { recorder } = this;
    if (hit) {
      recorder.hits++;
      recorder.storeHits++;
    } else recorder.misses++;
    if (recorder.isAwaited) recorder.wake();
    const event = hit ? "hit" : "miss";
    if (this.events.on[event] !== undefined) this.events.emit(event, { key });
  }

  /** A key that is asked for twice counts once. */
  lookedMany(keys: readonly string[], found: ReadonlyMap<string, unknown>): void {
    this.recorder.hits += found.size;
    this.recorder.storeHits += found.size;
    const { hit, miss } = this.events.on;
    if (found.size === keys.length && hit === undefined) return;
    const distinct = new Set(keys);
    this.recorder.misses += distinct.size - found.size;
    if (hit === undefined && miss === undefined) return;
    for (const key of distinct) this.events.emit(found.has(key) ? "hit" : "miss", { key });
  }

  written(key: string, tags: readonly string[]): void {
    this.recorder.sets++;
    if (this.recorder.isAwaited) this.recorder.wake();
    if (this.events.on.set !== undefined) this.events.emit("set", { key, tags });
  }

  notWritten(error: unknown): Error {
    return this.failedCall("set", error);
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

  /** When this call is one to be timed: its timing. Give it to `finish`. */
  start(operation: string): Timing | undefined {
    const record = this.recorder.operation(operation);
    return record.timesNext ? this.begin(record) : undefined;
  }

  /** Begins to time a call that is yet to be counted. */
  begin(record: OperationRecord): Timing {
    return record.begin(this.#clock.now());
  }

  /** Counts a call. */
  finish(operation: string, timing: Timing | undefined): void {
    this.recorder.operation(operation).add();
    if (this.recorder.isAwaited) this.recorder.wake();
    if (timing !== undefined) this.time(operation, timing);
  }

  time(operation: string, { startedAt, weight }: Timing): void {
    this.recorder.time(operation, (this.#clock.now() - startedAt) / 1000, weight);
  }

  /** Runs a direct operation; its error is counted and thrown. */
  run<T>(operation: string, work: () => T | Promise<T>): Promise<T> {
    return isTraced(operation)
      ? this.trace(operation, {}, () => this.#run(operation, work))
      : this.#run(operation, work);
  }

  /** Runs an operation that somebody traces. */
  trace<T>(operation: string, about: TraceDetails, work: () => Promise<T>): Promise<T> {
    return traced({ operation, prefix: this.#prefix, ...about }, work);
  }

  async #run<T>(operation: string, work: () => T | Promise<T>): Promise<T> {
    const timing = this.start(operation);
    try {
      return await work();
    } catch (error) {
      throw this.failedCall(operation, error);
    } finally {
      this.finish(operation, timing);
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
  observer(mine: Namespace): StoreObserver & { readonly space: Namespace } {
    return {
      space: mine,
      failed: (error) => this.failed("background", error),
      breakerChanged: (state) => this.events.emit("state", { what: "circuit_breaker", state }),
      evicted: (space, key) => {
        if (space !== mine) return;
        this.recorder.evictions++;
        if (this.recorder.isAwaited) this.recorder.wake();
        if (this.events.on.evict !== undefined) this.events.emit("evict", { key });
      },
    };
  }
}
