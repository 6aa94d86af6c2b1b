// In-flight reads: a reply whose key changed before it arrived must not be cached.
//
// Changes are rare and reads are frequent, so the changed keys are recorded while reads are in flight, each with a
// sequence number; a read without a concurrent change costs next to nothing.
import type { PushChannel } from "../backend.ts";

export interface WatchedRead {
  readonly key: string;
  /** The state of the push channel when it was sent; see PushChannel. */
  readonly epoch: number;
  /** The number of changes when it began, of those that are remembered. */
  readonly since: number;
  isOver: boolean;
}

/** Beyond this many changed keys, all in-flight reads count as changed. */
const MAX_CHANGED = 1_024;

export class InflightReads {
  readonly #push: PushChannel | undefined;
  #inFlight = 0;
  #changes = 0;
  /** Reads that began before this change must not be cached. */
  #invalidBefore = 0;
  /** Keys changed since, each with the number of its latest change. */
  readonly #changed = new Map<string, number>();

  constructor(push: PushChannel | undefined) {
    this.#push = push;
  }

  /** Call `end` when the reply has arrived. */
  begin(key: string): WatchedRead {
    this.#inFlight++;
    return { key, epoch: this.#push?.epoch(key) ?? 0, since: this.#changes, isOver: false };
  }

  /** Whether the reply may be cached: no change was pushed, and the channel would have pushed one. */
  end(read: WatchedRead): boolean {
    const hasChanged = read.isOver || this.#hasChanged(read);
    if (!read.isOver) {
      read.isOver = true;
      if (--this.#inFlight === 0 && this.#changes > 0) this.#forget();
    }
    return !hasChanged && read.epoch !== 0 && read.epoch === this.#push?.epoch(read.key);
  }

  invalidate(key: string): void {
    if (this.#inFlight === 0) return;
    this.#changed.set(key, ++this.#changes);
    if (this.#changed.size > MAX_CHANGED) this.invalidateAll();
  }

  invalidateAll(): void {
    if (this.#inFlight === 0) return;
    this.#invalidBefore = ++this.#changes;
    this.#changed.clear();
  }

  /** What changed while no read was in flight matters to none. */
  #forget(): void {
    this.#changes = 0;
    this.#invalidBefore = 0;
    this.#changed.clear();
  }

  #hasChanged({ key, since }: WatchedRead): boolean {
    if (since < this.#invalidBefore) return true;
    return this.#changed.size > 0 && (this.#changed.get(key) ?? 0) > since;
  }
}
