// Reads under way of what is to be kept at hand. A change before the reply makes the reply not worth keeping.
import type { PushChannel } from "./backend.ts";

export interface WatchedRead {
  readonly key: string;
  /** The state of the push channel when it was sent; see PushChannel. */
  readonly epoch: number;
  spoilt: boolean;
}

export class ReadWatch {
  readonly #push: PushChannel | undefined;
  readonly #reads = new Map<string, WatchedRead | Set<WatchedRead>>();

  constructor(push: PushChannel | undefined) {
    this.#push = push;
  }

  /** Call `end` when the reply is here. */
  begin(key: string): WatchedRead {
    const read: WatchedRead = { key, epoch: this.#push?.epoch(key) ?? 0, spoilt: false };
    const others = this.#reads.get(key);
    if (others === undefined) this.#reads.set(key, read);
    else if (others instanceof Set) others.add(read);
    else this.#reads.set(key, new Set([others, read]));
    return read;
  }

  /** Whether what was read may be kept: the store would have told of any change since. */
  end(read: WatchedRead): boolean {
    const reads = this.#reads.get(read.key);
    if (reads === read) this.#reads.delete(read.key);
    else if (reads instanceof Set) {
      reads.delete(read);
      if (reads.size === 0) this.#reads.delete(read.key);
    }
    return !read.spoilt && read.epoch !== 0 && read.epoch === this.#push?.epoch(read.key);
  }

  spoil(key: string): void {
    const reads = this.#reads.get(key);
    if (reads === undefined) return;
    if (reads instanceof Set) for (const read of reads) read.spoilt = true;
    else reads.spoilt = true;
  }

  spoilAll(): void {
    for (const key of this.#reads.keys()) this.spoil(key);
  }
}
