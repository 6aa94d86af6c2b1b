// The seals of one namespace: what is stored now is sealed with the present stamps, and is live while they stay present.
import { type Spelling, tagGroup } from "../keys.ts";
import type { StampSet, Token } from "../record.ts";
import type { PendingInvalidation } from "./outbox.ts";
import type { HeldStamp, StampBook } from "./stamps.ts";

/** Group stamps live long enough that none lapses during a load. */
const GROUP_LIFETIME_MS = 24 * 3600 * 1000;

const NO_TAGS: StampSet["tags"] = [];
const NO_STAMPS: readonly HeldStamp[] = [];

export class NamespaceStamps {
  /** Keys of the namespace stamps, root first. */
  readonly lineage: readonly string[];
  readonly #book: StampBook;
  readonly #names: Spelling;
  #heldLineage: readonly (HeldStamp | undefined)[];

  constructor(book: StampBook, names: Spelling, ancestors: readonly string[]) {
    this.#book = book;
    this.#names = names;
    this.lineage = [...ancestors, names.namespaceStamp()];
    this.#heldLineage = this.lineage.map(() => undefined);
  }

  /** Key of the stamp that covers this namespace and its ancestors. */
  get root(): string {
    return this.lineage[0] as string;
  }

  /** The seal for something stored now for `lifeMs`; the store has answered for each of its stamps. */
  async present(tags: readonly string[], lifeMs: number): Promise<StampSet> {
    const now = this.presentNow(tags, lifeMs);
    if (now !== undefined) return now;
    const book = this.#book;
    const tagKeys = tags.map(this.#names.tagStamp);
    const [lineage, ids] = await Promise.all([
      book.ensured(this.lineage, lifeMs) ?? book.ensure(this.lineage, Number.POSITIVE_INFINITY),
      tags.length === 0 ? [] : (book.ensured(tagKeys, lifeMs) ?? book.ensure(tagKeys, lifeMs)),
    ]);
    return { lineage, tags: tags.map((tag, at) => ({ tag, id: ids[at] as Token })) };
  }

  /** As `present` where nothing has to be asked. */
  presentNow(tags: readonly string[], lifeMs: number): StampSet | undefined {
    const lineage = this.#book.ensured(this.lineage, lifeMs);
    if (lineage === undefined) return undefined;
    if (tags.length === 0) return { lineage, tags: NO_TAGS };
    const ids = this.#book.ensured(tags.map(this.#names.tagStamp), lifeMs);
    return ids && { lineage, tags: tags.map((tag, at) => ({ tag, id: ids[at] as Token })) };
  }

  /** Stamps of tag groups. `anew`: from the store itself, not from what is at hand. */
  groups(groups: readonly number[], anew: boolean): Promise<readonly (Token | undefined)[]> {
    const keys = groups.map(this.#names.groupStamp);
    return anew ? this.#book.confirm(keys) : this.#book.ensure(keys, GROUP_LIFETIME_MS / 2);
  }

  /** true or false where every stamp is at hand and equal; otherwise the store is asked. */
  isLive(seal: StampSet): boolean | Promise<boolean> {
    if (seal.lineage.length !== this.lineage.length) return false;
    if (this.isKnownLive(seal)) return true;
    const doubtful = this.stampsOf(seal).filter(([key, id]) => this.#book.known(key) !== id);
    return doubtful.length === 0 || this.#confirm(doubtful);
  }

  /** The namespace's own stamps and its ancestors', as far as they are at hand. */
  heldLineage(): readonly (HeldStamp | undefined)[] {
    // The same list while it is the same stamps, so that whoever has it sees that at once.
    for (let at = 0; at < this.lineage.length; at++) {
      if (this.#book.held(this.lineage[at] as string) === this.#heldLineage[at]) continue;
      this.#heldLineage = this.lineage.map((key) => this.#book.held(key));
      break;
    }
    return this.#heldLineage;
  }

  /** The ids of the namespace's own stamps and its ancestors', where all are at hand. */
  knownLineage(): readonly Token[] | undefined {
    const held = this.heldLineage();
    return held.every((stamp) => stamp !== undefined) ? held.map(({ id }) => id) : undefined;
  }

  heldTags(seal: StampSet): readonly (HeldStamp | undefined)[] {
    if (seal.tags.length === 0) return NO_STAMPS;
    return seal.tags.map(({ tag }) => this.#book.held(this.#names.tagStamp(tag)));
  }

  /** Keys and ids of everything a seal is made of. */
  stampsOf(seal: StampSet): readonly (readonly [string, Token])[] {
    return [
      ...seal.lineage.map((id, at) => [this.lineage[at] as string, id] as const),
      ...seal.tags.map(({ tag, id }) => [this.#names.tagStamp(tag), id] as const),
    ];
  }

  /** The group first, then the tag: whoever finds the group unchanged knows that the tag's stamp was still good. */
  async invalidateTags(tags: readonly string[]): Promise<void> {
    const groups = [...new Set(tags.map(tagGroup))];
    const stamps = tags.map(this.#names.tagStamp);
    const replacing = Promise.all(
      groups.map((group) => this.#book.replace(this.#names.groupStamp(group), GROUP_LIFETIME_MS)),
    );
    if (!this.#book.isOrdered) await replacing;
    const [replaced] = await Promise.all([replacing, this.#book.remove(stamps)]);
    // A second attempt may have come after the tags: whoever made their stamps anew in between found the group unchanged.
    if (!replaced.every(Boolean)) await this.#book.remove(stamps);
  }

  /** What has the effect of `invalidateTags`. */
  pendingFor(tags: readonly string[]): readonly PendingInvalidation[] {
    const { root } = this;
    const groups = [...new Set(tags.map(tagGroup))].map(this.#names.groupStamp);
    return [
      ...groups.map((key) => ({ key, stampMs: GROUP_LIFETIME_MS, root })),
      ...tags.map((tag) => ({
        key: this.#names.tagStamp(tag),
        stampMs: undefined,
        root,
        after: this.#names.groupStamp(tagGroup(tag)),
      })),
    ];
  }

  /** What has the effect of `invalidateAll`. */
  pendingForAll(): readonly PendingInvalidation[] {
    return [{ key: this.#names.namespaceStamp(), stampMs: Number.POSITIVE_INFINITY, root: this.root }];
  }

  async invalidateAll(): Promise<void> {
    await this.#book.replace(this.#names.namespaceStamp(), Number.POSITIVE_INFINITY);
  }

  /** Whether every stamp is at hand and equal. */
  isKnownLive({ lineage, tags }: StampSet): boolean {
    if (lineage.length !== this.lineage.length) return false;
    for (let at = 0; at < lineage.length; at++) {
      if (this.#book.known(this.lineage[at] as string) !== lineage[at]) return false;
    }
    for (const { tag, id } of tags) if (this.#book.known(this.#names.tagStamp(tag)) !== id) return false;
    return true;
  }

  /** Whether these are the present stamps of the lineage, and all that the seal is made of. */
  matches({ lineage, tags }: StampSet, present: readonly (Token | undefined)[]): boolean {
    if (tags.length > 0 || lineage.length !== present.length) return false;
    for (let at = 0; at < lineage.length; at++) if (lineage[at] !== present[at]) return false;
    return true;
  }

  /** Before something is judged dead, a mismatch with what is at hand is confirmed by the store. */
  async #confirm(expected: readonly (readonly [string, Token])[]): Promise<boolean> {
    const present = await this.#book.confirm(expected.map(([key]) => key));
    return expected.every(([, id], at) => present[at] === id);
  }
}
