// Stamps in one process: objects that are alive or not, so that a hit checks a flag and nothing is compared.

/** The present state of a tag or a namespace. Dead ones never revive. */
export class LiveStamp {
  readonly tag: string;
  live = true;

  constructor(tag: string) {
    this.tag = tag;
  }
}

/** The stamps an entry was stored under. */
export class MemorySeal {
  readonly stamps: readonly LiveStamp[];
  readonly tags: readonly string[];

  constructor(stamps: readonly LiveStamp[], tags: readonly string[]) {
    this.stamps = stamps;
    this.tags = tags;
  }

  isLive(): boolean {
    const stamps = this.stamps;
    for (let at = 0; at < stamps.length; at++) if (!(stamps[at] as LiveStamp).live) return false;
    return true;
  }
}

/** The stamps of one namespace and the seals made from them. */
export class SealRing {
  readonly #parent: SealRing | undefined;
  #namespace = new LiveStamp("");
  // Held weakly: a tag that no entry carries any more needs no stamp.
  readonly #tags = new Map<string, WeakRef<LiveStamp>>();
  readonly #gone = new FinalizationRegistry<string>((tag) => {
    if (this.#tags.get(tag)?.deref() === undefined) this.#tags.delete(tag);
  });
  #plain: MemorySeal | undefined;
  #latest: MemorySeal | undefined;

  constructor(parent?: SealRing) {
    this.#parent = parent;
  }

  /** The seal for an entry stored now under these tags. */
  seal(tags: readonly string[]): MemorySeal {
    if (tags.length === 0) {
      if (this.#plain?.isLive() !== true) this.#plain = new MemorySeal(this.#lineage(), []);
      return this.#plain;
    }
    const latest = this.#latest;
    if (latest?.isLive() === true && sameTags(latest.tags, tags)) return latest;
    this.#latest = new MemorySeal([...this.#lineage(), ...tags.map((tag) => this.#stamp(tag))], [...tags]);
    return this.#latest;
  }

  invalidate(tag: string): void {
    const stamp = this.#tags.get(tag)?.deref();
    if (stamp !== undefined) stamp.live = false;
    this.#tags.delete(tag);
  }

  invalidateAll(): void {
    this.#namespace.live = false;
    this.#namespace = new LiveStamp("");
    this.#tags.clear();
  }

  #lineage(): readonly LiveStamp[] {
    return this.#parent === undefined ? [this.#namespace] : [...this.#parent.#lineage(), this.#namespace];
  }

  #stamp(tag: string): LiveStamp {
    const present = this.#tags.get(tag)?.deref();
    if (present !== undefined) return present;
    const stamp = new LiveStamp(tag);
    this.#tags.set(tag, new WeakRef(stamp));
    this.#gone.register(stamp, tag);
    return stamp;
  }
}

function sameTags(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((tag, at) => tag === others[at]);
}
