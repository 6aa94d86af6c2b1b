// Observers of a store, indexed by namespace: there may be one for each of very many.
import { type BreakerOptions, CircuitBreaker } from "../breaker.ts";
import type { Clock } from "../clock.ts";
import type { Namespace, StoreObserver } from "../namespace.ts";

export class Observers extends Set<StoreObserver> {
  readonly #byNamespace = new Map<Namespace | undefined, readonly StoreObserver[]>();

  override add(observer: StoreObserver): this {
    if (this.has(observer)) return this;
    const { namespace } = observer;
    this.#byNamespace.set(namespace, [...this.#at(namespace), observer]);
    return super.add(observer);
  }

  override delete(observer: StoreObserver): boolean {
    if (!super.delete(observer)) return false;
    const { namespace } = observer;
    const left = this.#at(namespace).filter((other) => other !== observer);
    if (left.length > 0) this.#byNamespace.set(namespace, left);
    else this.#byNamespace.delete(namespace);
    return true;
  }

  override clear(): void {
    this.#byNamespace.clear();
    super.clear();
  }

  evicted(namespace: Namespace, key: string): void {
    for (const observer of this.#at(namespace)) observer.evicted(namespace, key);
    for (const observer of this.#at(undefined)) observer.evicted(namespace, key);
  }

  #at(namespace: Namespace | undefined): readonly StoreObserver[] {
    return this.#byNamespace.get(namespace) ?? NO_OBSERVERS;
  }
}

const NO_OBSERVERS: readonly StoreObserver[] = [];

/** What a cache knows of a shared store at once: who observes it, and its circuit breaker. */
export class StoreFace {
  readonly observers = new Observers();
  readonly breaker: CircuitBreaker;

  constructor(options: BreakerOptions, clock: Clock) {
    this.breaker = new CircuitBreaker(options, clock, (state) => {
      for (const observer of this.observers) observer.breakerChanged(state);
    });
  }
}
