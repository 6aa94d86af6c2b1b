// The one rule of what is live: sealed with present stamps, and not past its time.
import type { Backend } from "./backend.ts";
import type { Spelling } from "./keys.ts";
import type { Entry, Seal, StoreRecord, Token } from "./record.ts";
import type { StampBook } from "./stamps.ts";

/** The stamps that something in a namespace is sealed with, by their keys. */
export interface SealKeys {
  /** Namespace stamps, root first. */
  readonly lineage: readonly string[];
  tag(tag: string): string;
}

export function sealKeys(lineage: readonly string[], names: Spelling): SealKeys {
  return { lineage, tag: names.tagStamp };
}

/** The entry a record stands for: itself, or what a lease keeps behind it. */
export function entryOf(record: StoreRecord | undefined, key: string): Entry | undefined {
  const entry = record?.kind === "lease" ? record.behind : record;
  return entry?.kind === "entry" && entry.key === key ? entry : undefined;
}

export class Liveness {
  readonly #book: StampBook;
  readonly #backend: Backend;
  readonly #keys: SealKeys;

  constructor(book: StampBook, backend: Backend, keys: SealKeys) {
    this.#book = book;
    this.#backend = backend;
    this.#keys = keys;
  }

  /** How long ago an entry expired, in milliseconds; 0 while fresh. Early by the clock's error, never late. */
  expiredForMs(entry: Entry): number {
    if (entry.expires === Number.POSITIVE_INFINITY) return 0;
    return Math.max(0, this.#backend.now() + this.#backend.clockErrorMs() - entry.expires);
  }

  /** `record` is what the entry was found in. */
  isFresh(entry: Entry, record: StoreRecord | undefined): boolean {
    if (entry.expires === Number.POSITIVE_INFINITY) return true;
    // Without a stale window the store itself drops it in time: its presence is the proof, unless a lease keeps it.
    if (entry === record && entry.expires === entry.staleUntil) return true;
    return this.#backend.now() + this.#backend.clockErrorMs() < entry.expires;
  }

  /** true or false where every stamp is at hand and equal; otherwise the store is asked. */
  isSealed(seal: Seal): boolean | Promise<boolean> {
    const { lineage, tags } = seal;
    if (lineage.length !== this.#keys.lineage.length) return false;
    const known =
      lineage.every((id, at) => this.#book.known(this.#keys.lineage[at] as string) === id) &&
      tags.every(({ tag, id }) => this.#book.known(this.#keys.tag(tag)) === id);
    return known || this.#confirm(seal);
  }

  async #confirm(seal: Seal): Promise<boolean> {
    const expected = new Map<string, Token>();
    for (const [at, id] of seal.lineage.entries()) expected.set(this.#keys.lineage[at] as string, id);
    for (const { tag, id } of seal.tags) expected.set(this.#keys.tag(tag), id);
    const doubtful = [...expected.keys()].filter((key) => this.#book.known(key) !== expected.get(key));
    const present = await this.#book.confirm(doubtful);
    return doubtful.every((key, at) => present[at] === expected.get(key));
  }
}
