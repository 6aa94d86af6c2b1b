// The stamps of one namespace: what is stored carries the current stamps, and is live as long as they stay current.
import { atEndOfTurn } from "../event-loop.ts";
import { type Spelling, tagGroup } from "../keys.ts";
import type { Invalidation } from "../namespace.ts";
import type { StampSet, Token } from "../record.ts";
import type { PendingInvalidation } from "./outbox.ts";
import type { HeldStamp, StampBook } from "./stamps.ts";

/** Long enough that no group stamp expires during a load. */
const GROUP_LIFETIME_MS = 24 * 3600 * 1000;

const NO_TAGS: StampSet["tags"] = [];
const NO_TOKENS: readonly Token[] = [];
const NO_STAMPS: readonly HeldStamp[] = [];

/** Gets the stamps that it waits for, or the reason why there are none. */
export interface StampTaker {
  take(stamps: StampSet): void;
  fail(error: unknown): void;
}

interface Asked {
  readonly tags: readonly string[];
  readonly lifetimeMs: number;
  readonly stamps: Promise<StampSet>;
  /** In the order they asked; undefined: none has. */
  takers: StampTaker[] | undefined;
}

export class NamespaceStamps {
  /** Keys of the namespace stamps, root first. */
  readonly namespaceKeys: readonly string[];
  readonly #book: StampBook;
  readonly #names: Spelling;
  #heldNamespaceStamps: readonly (HeldStamp | undefined)[];
  /** The latest question of this turn. */
  #asked: Asked | undefined;
  readonly #forgetAsked = (): void => {
    this.#asked = undefined;
  };

  constructor(book: StampBook, names: Spelling, ancestors: readonly string[]) {
    this.#book = book;
    this.#names = names;
    this.namespaceKeys = [...ancestors, names.namespaceStamp()];
    this.#heldNamespaceStamps = this.namespaceKeys.map(() => undefined);
  }

  /** Key of the stamp that covers this namespace and its ancestors. */
  get root(): string {
    return this.namespaceKeys[0] as string;
  }

  /**
   * The stamps for something stored now for `lifetimeMs`; the store has confirmed each of them. Calls of one turn of the event
   * loop that need the same stamps share one question if it leaves at the end of the turn.
   */
  present(tags: readonly string[], lifetimeMs: number): Promise<StampSet> {
    return this.#question(tags, lifetimeMs).stamps;
  }

  /** As `present`, with callbacks: those that share a question share its promise as well. */
  presentThen(tags: readonly string[], lifetimeMs: number, taker: StampTaker): void {
    const asked = this.#question(tags, lifetimeMs);
    if (asked.takers !== undefined) {
      asked.takers.push(taker);
      return;
    }
    const takers = [taker];
    asked.takers = takers;
    asked.stamps.then(
      (stamps) => {
        for (const each of takers) hand(stamps, each);
      },
      (error: unknown) => {
        for (const each of takers) each.fail(error);
      },
    );
  }

  /** One that can still be shared, or a new one. */
  #question(tags: readonly string[], lifetimeMs: number): Asked {
    const latest = this.#asked;
    if (latest?.lifetimeMs === lifetimeMs && isEqual(latest.tags, tags)) return latest;
    const asked: Asked = { tags, lifetimeMs, stamps: this.#ask(tags, lifetimeMs), takers: undefined };
    if (!this.#book.isShareable) return asked;
    if (latest === undefined) atEndOfTurn(this.#forgetAsked);
    this.#asked = asked;
    return asked;
  }

  async #ask(tags: readonly string[], lifetimeMs: number): Promise<StampSet> {
    const book = this.#book;
    const tagKeys = tags.map(this.#names.tagStamp);
    const [namespaceStamps, ids] = await Promise.all([
      book.ensured(this.namespaceKeys, lifetimeMs) ??
        book.ensure(this.namespaceKeys, Number.POSITIVE_INFINITY),
      tags.length === 0 ? [] : (book.ensured(tagKeys, lifetimeMs) ?? book.ensure(tagKeys, lifetimeMs)),
    ]);
    return { namespaceStamps: namespaceStamps, tags: tags.map((tag, at) => ({ tag, id: ids[at] as Token })) };
  }

  /** As `present` if all stamps are known locally, or the store answers synchronously; undefined otherwise. */
  presentNow(tags: readonly string[], lifetimeMs: number): StampSet | undefined {
    const book = this.#book;
    const ids = tags.length === 0 ? NO_TOKENS : book.ensured(tags.map(this.#names.tagStamp), lifetimeMs);
    if (ids === undefined) return undefined;
    const namespaceStamps =
      book.ensured(this.namespaceKeys, lifetimeMs) ?? book.permanentNow(this.namespaceKeys);
    return (
      namespaceStamps && {
        namespaceStamps,
        tags: tags.length === 0 ? NO_TAGS : tags.map((tag, at) => ({ tag, id: ids[at] as Token })),
      }
    );
  }

  /** Stamps of tag groups. `fresh`: read from the store, not from the local copy. */
  groups(groups: readonly number[], fresh: boolean): Promise<readonly (Token | undefined)[]> {
    const keys = groups.map(this.#names.groupStamp);
    return fresh ? this.#book.confirm(keys) : this.#book.ensure(keys, GROUP_LIFETIME_MS / 2);
  }

  /** Synchronous where the local stamps decide it; otherwise the store is asked. */
  isLive(stamps: StampSet): boolean | Promise<boolean> {
    if (stamps.namespaceStamps.length !== this.namespaceKeys.length) return false;
    if (this.isKnownLive(stamps)) return true;
    const doubtful = this.stampsOf(stamps).filter(([key, id]) => this.#book.known(key) !== id);
    return doubtful.length === 0 || this.#confirm(doubtful);
  }

  /** What has invalidated a set, as the store knows it; undefined: nothing. */
  async invalidationOf(stamps: StampSet): Promise<Invalidation | undefined> {
    if (stamps.namespaceStamps.length !== this.namespaceKeys.length) return { tags: [], isCleared: true };
    const expected = this.stampsOf(stamps);
    const present = await this.#book.confirm(expected.map(([key]) => key));
    const isBroken = (at: number): boolean => present[at] !== expected[at]?.[1];
    const spaces = stamps.namespaceStamps.length;
    const isCleared = stamps.namespaceStamps.some((_, at) => isBroken(at));
    const tags = stamps.tags.filter((_, at) => isBroken(spaces + at)).map(({ tag }) => tag);
    return isCleared || tags.length > 0 ? { tags, isCleared } : undefined;
  }

  /** The stamps of the namespace and its ancestors, as far as they are known locally. */
  heldNamespaceStamps(): readonly (HeldStamp | undefined)[] {
    // The same array as long as the stamps are the same, so that callers can compare by identity.
    for (let at = 0; at < this.namespaceKeys.length; at++) {
      if (this.#book.held(this.namespaceKeys[at] as string) === this.#heldNamespaceStamps[at]) continue;
      this.#heldNamespaceStamps = this.namespaceKeys.map((key) => this.#book.held(key));
      break;
    }
    return this.#heldNamespaceStamps;
  }

  /** The ids of those stamps, if all are known locally. */
  knownNamespaceStamps(): readonly Token[] | undefined {
    const held = this.heldNamespaceStamps();
    return held.every((stamp) => stamp !== undefined) ? held.map(({ id }) => id) : undefined;
  }

  heldTagStamps(stamps: StampSet): readonly (HeldStamp | undefined)[] {
    if (stamps.tags.length === 0) return NO_STAMPS;
    return stamps.tags.map(({ tag }) => this.#book.held(this.#names.tagStamp(tag)));
  }

  /** Keys and ids of all stamps in a set. */
  stampsOf(stamps: StampSet): readonly (readonly [string, Token])[] {
    return [
      ...stamps.namespaceStamps.map((id, at) => [this.namespaceKeys[at] as string, id] as const),
      ...stamps.tags.map(({ tag, id }) => [this.#names.tagStamp(tag), id] as const),
    ];
  }

  /** The group first, then the tag: a load that finds the group unchanged knows that the tag's stamp was still valid. */
  async invalidateTags(tags: readonly string[]): Promise<void> {
    const groups = [...new Set(tags.map(tagGroup))];
    const stamps = tags.map(this.#names.tagStamp);
    const replacing = Promise.all(
      groups.map((group) => this.#book.replace(this.#names.groupStamp(group), GROUP_LIFETIME_MS)),
    );
    if (!this.#book.isOrdered) await replacing;
    const [replaced] = await Promise.all([replacing, this.#book.remove(stamps)]);
    // A second attempt may have come after the tags: a load that recreated their stamps in between saw the old group stamp.
    if (!replaced.every(Boolean)) await this.#book.remove(stamps);
  }

  /** The operations that make up `invalidateTags`. */
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

  /** The operations that make up `invalidateAll`. */
  pendingForAll(): readonly PendingInvalidation[] {
    return [{ key: this.#names.namespaceStamp(), stampMs: Number.POSITIVE_INFINITY, root: this.root }];
  }

  async invalidateAll(): Promise<void> {
    await this.#book.replace(this.#names.namespaceStamp(), Number.POSITIVE_INFINITY);
  }

  /** Whether every stamp is known locally and equal. */
  isKnownLive({ namespaceStamps, tags }: StampSet): boolean {
    if (namespaceStamps.length !== this.namespaceKeys.length) return false;
    for (let at = 0; at < namespaceStamps.length; at++) {
      if (this.#book.known(this.namespaceKeys[at] as string) !== namespaceStamps[at]) return false;
    }
    for (const { tag, id } of tags) if (this.#book.known(this.#names.tagStamp(tag)) !== id) return false;
    return true;
  }

  /** Whether a set without tags consists of exactly these namespace stamps. */
  matches({ namespaceStamps, tags }: StampSet, present: readonly (Token | undefined)[]): boolean {
    if (tags.length > 0 || namespaceStamps.length !== present.length) return false;
    for (let at = 0; at < namespaceStamps.length; at++) if (namespaceStamps[at] !== present[at]) return false;
    return true;
  }

  /** A mismatch with a local stamp is confirmed by the store before an entry is considered dead. */
  async #confirm(expected: readonly (readonly [string, Token])[]): Promise<boolean> {
    const present = await this.#book.confirm(expected.map(([key]) => key));
    return expected.every(([, id], at) => present[at] === id);
  }
}

function hand(stamps: StampSet, taker: StampTaker): void {
  try {
    taker.take(stamps);
  } catch (error) {
    taker.fail(error);
  }
}

function isEqual(some: readonly string[], others: readonly string[]): boolean {
  return some === others || (some.length === others.length && some.every((each, at) => each === others[at]));
}
