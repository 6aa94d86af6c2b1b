// Tag stamps in one process: objects that are alive or not, so that a hit checks flags and compares nothing.

/** The present state of a tag. Dead ones never revive. */
class TagStamp {
  live = true;
}

/** The stamps an entry was stored under. */
export class MemorySeal {
  readonly tags: readonly string[];
  readonly #stamps: readonly TagStamp[];

  constructor(tags: readonly string[], stamps: readonly TagStamp[]) {
    this.tags = tags;
    this.#stamps = stamps;
  }

  isLive(): boolean {
    const stamps = this.#stamps;
    for (let at = 0; at < stamps.length; at++) if (!(stamps[at] as TagStamp).live) return false;
    return true;
  }
}

/** The tags of one namespace and the seals made from them. */
export class TagRing {
  // Held weakly: a tag that no entry carries any more needs no stamp.
  readonly #stamps = new Map<string, WeakRef<TagStamp>>();
  readonly #gone = new FinalizationRegistry<string>((tag) => {
    if (this.#stamps.get(tag)?.deref() === undefined) this.#stamps.delete(tag);
  });
  #latest: MemorySeal | undefined;

  /** The seal for an entry stored now under these tags; none without tags. */
  seal(tags: readonly string[]): MemorySeal | undefined {
    if (tags.length === 0) return undefined;
    const latest = this.#latest;
    if (latest?.isLive() !== true || !sameTags(latest.tags, tags)) this.#latest = this.#newSeal(tags);
    return this.#latest;
  }

  invalidate(tag: string): void {
    const stamp = this.#stamps.get(tag)?.deref();
    if (stamp !== undefined) stamp.live = false;
    this.#stamps.delete(tag);
  }

  #newSeal(tags: readonly string[]): MemorySeal {
    const stamps = tags.map((tag) => this.#stamp(tag));
    return new MemorySeal([...tags], stamps);
  }

  #stamp(tag: string): TagStamp {
    const present = this.#stamps.get(tag)?.deref();
    if (present !== undefined) return present;
    const stamp = new TagStamp();
    this.#stamps.set(tag, new WeakRef(stamp));
    this.#gone.register(stamp, tag);
    return stamp;
  }
}

function sameTags(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((tag, at) => tag === others[at]);
}
