// Tag stamps in one process: objects that are alive or not, so that a hit checks flags and compares nothing.
import { type KeyName, nameOf } from "./layout/key-name.ts";

/** The present state of a tag. Dead ones never revive. */
class TagStamp {
  readonly tag: string;
  live = true;
  /** How many seals in use were made of it. */
  seals = 0;

  constructor(tag: string) {
    this.tag = tag;
  }
}

/** The stamps an entry was stored under. */
export class TagSet {
  readonly tags: readonly string[];
  readonly #stamps: readonly TagStamp[];
  readonly #ring: TagRing;
  /** How many entries carry it. */
  #entries = 0;

  constructor(tags: readonly string[], stamps: readonly TagStamp[], ring: TagRing) {
    this.tags = tags;
    this.#stamps = stamps;
    this.#ring = ring;
  }

  isLive(): boolean {
    const stamps = this.#stamps;
    for (let at = 0; at < stamps.length; at++) if (!(stamps[at] as TagStamp).live) return false;
    return true;
  }

  /** An entry is about to carry it. */
  retain(): void {
    this.#entries++;
  }

  /** An entry does not carry it any more; with the last one its tags are forgotten. */
  release(): void {
    if (--this.#entries === 0) this.#ring.forget(this, this.#stamps);
  }
}

/** The tags of one namespace that entries carry, and the seals made from them. */
export class TagRing {
  // Not held weakly: until the event loop turns, the engine would keep every tag that was ever named.
  readonly #stamps = new Map<KeyName, TagStamp>();
  #latest: TagSet | undefined;

  /** How many tags are known. */
  get size(): number {
    return this.#stamps.size;
  }

  /** The seal for an entry stored now under these tags; none without tags. */
  tagSetFor(tags: readonly string[]): TagSet | undefined {
    if (tags.length === 0) return undefined;
    const latest = this.#latest;
    if (latest?.isLive() !== true || !sameTags(latest.tags, tags)) this.#latest = this.#newSeal(tags);
    return this.#latest;
  }

  invalidate(tag: string): void {
    const name = nameOf(tag);
    const stamp = this.#stamps.get(name);
    if (stamp !== undefined) stamp.live = false;
    this.#stamps.delete(name);
  }

  /** No entry carries the seal any more, and none will: the next one gets another. */
  forget(seal: TagSet, stamps: readonly TagStamp[]): void {
    if (this.#latest === seal) this.#latest = undefined;
    for (const stamp of stamps) {
      if (--stamp.seals === 0 && stamp.live) this.#stamps.delete(nameOf(stamp.tag));
    }
  }

  #newSeal(tags: readonly string[]): TagSet {
    const stamps = tags.map((tag) => this.#stamp(tag));
    for (const stamp of stamps) stamp.seals++;
    return new TagSet([...tags], stamps, this);
  }

  #stamp(tag: string): TagStamp {
    const name = nameOf(tag);
    let stamp = this.#stamps.get(name);
    if (stamp === undefined) {
      stamp = new TagStamp(tag);
      this.#stamps.set(name, stamp);
    }
    return stamp;
  }
}

function sameTags(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((tag, at) => tag === others[at]);
}
