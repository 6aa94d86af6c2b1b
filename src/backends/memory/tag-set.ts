// Tag stamps within one process: objects with a live flag, so that a hit checks flags instead of comparing stamps.
import { type KeyName, nameOf } from "./layout/key-name.ts";

/** The current stamp of a tag. A dead one never becomes live again. */
class TagStamp {
  readonly tag: string;
  live = true;
  /** How many tag sets in use contain it. */
  tagSets = 0;

  constructor(tag: string) {
    this.tag = tag;
  }
}

/** The stamps an entry was stored under. */
export class TagSet {
  readonly tags: readonly string[];
  readonly #stamps: readonly TagStamp[];
  readonly #ring: TagRing;
  /** How many entries refer to it. */
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

  /** Those that have been invalidated since. */
  invalidated(): readonly string[] {
    return this.#stamps.filter(({ live }) => !live).map(({ tag }) => tag);
  }

  /** Call it before an entry refers to this set. */
  retain(): void {
    this.#entries++;
  }

  /** Call it when an entry no longer refers to this set; after the last one its tags are forgotten. */
  release(): void {
    if (--this.#entries === 0) this.#ring.forget(this, this.#stamps);
  }
}

/** The tags in use by the entries of one namespace, and the tag sets made from them. */
export class TagRing {
  // No weak references: the engine would keep their targets until the end of the event-loop turn.
  readonly #stamps = new Map<KeyName, TagStamp>();
  #latest: TagSet | undefined;

  /** How many tags are known. */
  get size(): number {
    return this.#stamps.size;
  }

  /** The tag set for an entry stored now with these tags; undefined without tags. */
  tagSetFor(tags: readonly string[]): TagSet | undefined {
    if (tags.length === 0) return undefined;
    const latest = this.#latest;
    if (latest?.isLive() !== true || !sameTags(latest.tags, tags)) this.#latest = this.#newTagSet(tags);
    return this.#latest;
  }

  invalidate(tag: string): void {
    const name = nameOf(tag);
    const stamp = this.#stamps.get(name);
    if (stamp !== undefined) stamp.live = false;
    this.#stamps.delete(name);
  }

  /** No entry refers to the set any more, and none will: the next entry gets a new one. */
  forget(tagSet: TagSet, stamps: readonly TagStamp[]): void {
    if (this.#latest === tagSet) this.#latest = undefined;
    for (const stamp of stamps) {
      if (--stamp.tagSets === 0 && stamp.live) this.#stamps.delete(nameOf(stamp.tag));
    }
  }

  #newTagSet(tags: readonly string[]): TagSet {
    const stamps = tags.map((tag) => this.#stamp(tag));
    for (const stamp of stamps) stamp.tagSets++;
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
