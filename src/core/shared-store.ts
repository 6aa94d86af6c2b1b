// A store shared by processes: one backend behind a breaker and deadlines, with its stamps and pushes.
import type { Backend } from "./backend.ts";
import { type BreakerOptions, CircuitBreaker } from "./breaker.ts";
import { Changes } from "./changes.ts";
import type { Clock } from "./clock.ts";
import type { Codec } from "./codec.ts";
import { Guard } from "./guard.ts";
import { spelling } from "./keys.ts";
import { SharedSpace, type SpaceStore } from "./shared-space.ts";
import type { Space, Store, StoreObserver } from "./space.ts";
import { StampBook } from "./stamps.ts";

export interface StoreOptions {
  readonly clock: Clock;
  readonly codec: Codec;
  readonly breaker: BreakerOptions;
  readonly operationTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly poolSize: number;
}

export class SharedStore implements Store, SpaceStore {
  readonly backend: Backend;
  readonly breaker: CircuitBreaker;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly guard: Guard;
  readonly stamps: StampBook;
  readonly observers = new Set<StoreObserver>();
  /** Tells of a failure that no caller sees. */
  readonly report = (error: Error): void => {
    for (const observer of this.observers) observer.failed(error);
  };
  /** Grows with every disconnect. */
  session = 0;
  readonly #spaces = new Map<string, SharedSpace>();
  readonly #keyListeners = new Map<string, Set<() => void>>();

  constructor(backend: Backend, options: StoreOptions) {
    this.backend = backend;
    this.clock = options.clock;
    this.codec = options.codec;
    this.breaker = new CircuitBreaker(options.breaker, options.clock, (state) => {
      for (const observer of this.observers) observer.breakerChanged(state);
    });
    this.guard = new Guard(options.clock, this.breaker, options.operationTimeoutMs);
    this.stamps = new StampBook(backend, options.clock);
    backend.open?.({
      clock: options.clock,
      operationTimeoutMs: options.operationTimeoutMs,
      connectTimeoutMs: options.connectTimeoutMs,
      poolSize: options.poolSize,
      report: this.report,
      evicted: (key) => this.#evicted(key),
    });
    backend.push?.onChange((key) => this.#pushed(key));
  }

  space(prefix: string): Space {
    let space = this.#spaces.get(prefix);
    if (space === undefined) {
      space = new SharedSpace(this, spelling(prefix), [], new Changes());
      this.#spaces.set(prefix, space);
    }
    return space;
  }

  connect(): Promise<void> {
    return this.backend.connect();
  }

  disconnect(): Promise<void> {
    this.session++;
    this.stamps.forgetAll();
    return this.backend.disconnect();
  }

  fill(): number {
    return 0;
  }

  ping(): Promise<void> {
    return this.guard.run("ping", () => this.backend.ping());
  }

  /** Calls `listener` whenever the store says that `key` may have changed; returns how to stop. */
  listen(key: string, listener: () => void): () => void {
    const listeners = this.#keyListeners.get(key) ?? new Set();
    listeners.add(listener);
    this.#keyListeners.set(key, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#keyListeners.delete(key);
    };
  }

  #evicted(spelled: string): void {
    for (const space of this.#spaces.values()) {
      const owner = space.ownerOf(spelled);
      if (owner === undefined) continue;
      for (const observer of this.observers) observer.evicted(owner, owner.names.keyOf(spelled));
      return;
    }
  }

  #pushed(key: string | undefined): void {
    if (key === undefined) {
      this.stamps.forgetAll();
      for (const listeners of [...this.#keyListeners.values()])
        for (const listener of [...listeners]) listener();
    } else {
      this.stamps.forget(key);
      for (const listener of [...(this.#keyListeners.get(key) ?? [])]) listener();
    }
  }
}
