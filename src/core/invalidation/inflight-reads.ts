// Reads under way of what is to be kept at hand. A change before the reply makes the reply not worth keeping.
//
// Changes are few and reads are many, so what is remembered while reads are under way is which keys have changed, and
// when, by a count of changes: a read that meets no change costs nothing but to say so.
import type { PushChannel } from "../backend.ts";

export interface WatchedRead {
  readonly key: string;
  /** The state of the push channel when it was sent; see PushChannel. */
  readonly epoch: number;
  /** How many changes there had been when it began. */
  readonly since: number;
  isOver: boolean;
}

/** Of more changed keys than these it is no longer known which they were: then all reads under way have met one. */
const MOST_CHANGED = 1_024;

export class InflightReads {
  readonly #push: PushChannel | undefined;
  #underWay = 0;
  #changes = 0;
  /** Reads that began before this many changes have met one. */
  #spoiltBefore = 0;
  /** Keys that changed since, each with the count of its latest change. */
  readonly #changed = new Map<string, number>();

  constructor(push: PushChannel | undefined) {
    this.#push = push;
  }

  /** Call `end` when the reply is here. */
  begin(key: string): WatchedRead {
    this.#underWay++;
    return { key, epoch: this.#push?.epoch(key) ?? 0, since: this.#changes, isOver: false };
  }

  /** Whether what was read may be kept: the store would have told of any change since. */
  end(read: WatchedRead): boolean {
    const isSpoilt = read.isOver || this.#isSpoilt(read);
    if (!read.isOver) {
      read.isOver = true;
      if (--this.#underWay === 0 && this.#changed.size > 0) this.#changed.clear();
    }
    return !isSpoilt && read.epoch !== 0 && read.epoch === this.#push?.epoch(read.key);
  }

  spoil(key: string): void {
    if (this.#underWay === 0) return;
    this.#changed.set(key, ++this.#changes);
    if (this.#changed.size > MOST_CHANGED) this.spoilAll();
  }

  spoilAll(): void {
    this.#spoiltBefore = ++this.#changes;
    this.#changed.clear();
  }

  #isSpoilt({ key, since }: WatchedRead): boolean {
    if (since < this.#spoiltBefore) return true;
    return this.#changed.size > 0 && (this.#changed.get(key) ?? 0) > since;
  }
}
