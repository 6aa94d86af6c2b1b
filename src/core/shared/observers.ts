// Who is told what happens in a store, found by namespace: there may be one for each of very many.
import type { Namespace, StoreObserver } from "../namespace.ts";

export class Observers extends Set<StoreObserver> {
  readonly #bySpace = new Map<Namespace | undefined, readonly StoreObserver[]>();

  override add(observer: StoreObserver): this {
    if (this.has(observer)) return this;
    const { space } = observer;
    this.#bySpace.set(space, [...this.#at(space), observer]);
    return super.add(observer);
  }

  override delete(observer: StoreObserver): boolean {
    if (!super.delete(observer)) return false;
    const { space } = observer;
    const left = this.#at(space).filter((other) => other !== observer);
    if (left.length > 0) this.#bySpace.set(space, left);
    else this.#bySpace.delete(space);
    return true;
  }

  override clear(): void {
    this.#bySpace.clear();
    super.clear();
  }

  evicted(space: Namespace, key: string): void {
    for (const observer of this.#at(space)) observer.evicted(space, key);
    for (const observer of this.#at(undefined)) observer.evicted(space, key);
  }

  #at(space: Namespace | undefined): readonly StoreObserver[] {
    return this.#bySpace.get(space) ?? NOBODY;
  }
}

const NOBODY: readonly StoreObserver[] = [];
