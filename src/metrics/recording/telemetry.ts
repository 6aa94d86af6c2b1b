// Every operation of a cache object passes here: it is counted, timed, traced and emitted as events.
import type { Clock } from "../../core/clock.ts";
import { Emitter, toError } from "../../core/events.ts";
import type { FunctionRecord } from "../../core/function-record.ts";
import type { LoadObserver } from "../../core/loading/loader.ts";
import type { Loaded } from "../../core/loading/waiting-call.ts";
import type { Namespace, StoreObserver, WriteObserver } from "../../core/namespace.ts";
import { isTraced, type TraceDetails, traced } from "../tracing.ts";
import { ChangeMarks } from "./change-marks.ts";
import { FunctionCounts } from "./function-counts.ts";
import type { OperationRecord, Timing } from "./operation-record.ts";
import { Recorder } from "./recorder.ts";

/** Writes down what a cache decides; see cache/decision-log.ts. */
export interface Decisions {
  around<T>(operation: string, key: string | undefined, work: () => Promise<T>): Promise<T>;
  loaded(outcome: Loaded | undefined): void;
  failed(operation: string, error: Error): void;
}

export class Telemetry implements WriteObserver {
  readonly events = new Emitter();
  readonly recorder: Recorder;
  readonly functions: FunctionCounts;
  readonly marks: ChangeMarks;
  /** Also counts the hits of getOrSet, which are the same to the store. */
  readonly gets: OperationRecord;
  /** A field of its own, like `gets`, because sets are frequent. */
  readonly sets: OperationRecord;
  /** Absent unless somebody wants to read it: then every operation must be traced. */
  decisions: Decisions | undefined;
  readonly #clock: Clock;
  readonly #prefix: string;

  /** `prefix` identifies the cache in traces. */
  constructor(clock: Clock, prefix = "") {
    this.#clock = clock;
    this.#prefix = prefix;
    this.recorder = new Recorder(clock);
    this.functions = new FunctionCounts(clock);
    this.marks = new ChangeMarks();
    this.gets = this.recorder.operation("get");
    this.sets = this.recorder.operation("set");
  }

  /** Hot path: allocates nothing without a listener. */
  hit(key: string): void {
    this.gets.add();
    this.recorder.hits++;
    if (this.recorder.isAwaited) this.recorder.wake();
    if (this.events.on.hit !== undefined) this.events.emit("hit", { key });
  }

  /** A hit that was answered by the store. */
  storeHit(key: string): void {
    this.recorder.storeHits++;
    this.hit(key);
  }

  /** The outcome of a store read. */
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

  /** The outcome of a getOrSet call that was not a hit at once; undefined if it has failed. */
  loaded(key: string, outcome: Loaded | undefined, by: FunctionRecord | undefined): void {
    const { recorder } = this;
    this.decisions?.loaded(outcome);
    if (outcome?.source === "stale") {
      recorder.staleServed++;
      if (by !== undefined) by.stale++;
    } else if (outcome?.coalesced) {
      recorder.coalesced++;
      if (by !== undefined) by.coalesced++;
    } else if (outcome?.source === "store" && by !== undefined) by.missed--;
    this.looked(key, outcome?.source === "store");
  }

  /** A key requested twice counts once. */
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

  /** Listeners get every key; only keys that existed are counted. */
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
    this.marks.invalidated(what, (this.#clock.wall ?? this.#clock.now)());
    this.events.emit("invalidate", what);
  }

  /** Returns a timing if this call is to be timed; pass it to `finish`. */
  start(operation: string): Timing | undefined {
    const record = this.recorder.operation(operation);
    return record.timesNext ? this.begin(record) : undefined;
  }

  /** Starts timing a call that has not been counted yet. */
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

  /** Runs an operation that is being traced. */
  trace<T>(operation: string, about: TraceDetails, work: () => Promise<T>): Promise<T> {
    const run = (): Promise<T> => traced({ operation, prefix: this.#prefix, ...about }, work);
    return this.decisions === undefined ? run() : this.decisions.around(operation, about.key, run);
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

  /** Counts an error that the caller receives. */
  failedCall(operation: string, thrown: unknown): Error {
    const error = toError(thrown);
    this.recorder.failed(operation, error);
    return error;
  }

  /** Counts an error that no caller receives, and emits it. */
  failed(operation: string, error: Error): void {
    this.decisions?.failed(operation, error);
    this.recorder.failed(operation, error);
    this.events.emit("error", { error, operation });
  }

  connection(state: "connected" | "disconnected"): void {
    this.marks.changed("connection", state);
    this.events.emit("state", { what: "connection", state });
  }

  /** What the store tells about this namespace; `namespace` lets a store find the observer without calling every one. */
  observer(mine: Namespace): StoreObserver & { readonly namespace: Namespace } {
    return {
      namespace: mine,
      failed: (error) => this.failed("background", error),
      hearsErrors: () => this.events.on.error !== undefined,
      breakerChanged: (state) => {
        this.marks.changed("circuit_breaker", state);
        this.events.emit("state", { what: "circuit_breaker", state });
      },
      evicted: (space, key) => {
        if (space !== mine) return;
        this.recorder.evictions++;
        if (this.recorder.isAwaited) this.recorder.wake();
        if (this.events.on.evict !== undefined) this.events.emit("evict", { key });
      },
    };
  }
}

/** Counts and times a getOrSet call that was not a hit at once. */
export class CountedLoad implements LoadObserver {
  readonly #telemetry: Telemetry;
  readonly #key: string;
  readonly #by: FunctionRecord | undefined;
  readonly #timing: Timing | undefined;

  constructor(telemetry: Telemetry, key: string, by: FunctionRecord | undefined) {
    this.#telemetry = telemetry;
    this.#key = key;
    this.#by = by;
    this.#timing = telemetry.start("getOrSet");
  }

  ended(outcome: Loaded | undefined): void {
    this.#telemetry.loaded(this.#key, outcome, this.#by);
    this.#telemetry.finish("getOrSet", this.#timing);
  }
}
