// Keeps the index like the store: built from it at the start, told of what others store, rid of what is gone.
import type { Clock } from "../core/clock.ts";
import { UnsupportedError } from "../core/errors.ts";
import { nextTurn } from "../core/event-loop.ts";
import { toError } from "../core/events.ts";
import type { XCache } from "../xcache.ts";
import { readEntries } from "./answer-reader.ts";
import { ChangeFeed } from "./change-feed.ts";
import type { VectorIndex } from "./vector-index.ts";

export interface IndexSyncOptions {
  readonly space: XCache;
  readonly index: VectorIndex;
  readonly clock: Clock;
  /** The vector of what is stored, if it belongs into the index. */
  readonly vectorOf: (found: unknown) => Float32Array | undefined;
  /** Told what no caller is waiting for. */
  readonly report: (error: Error) => void;
}

/** Answers read at once: their memory is all that building takes beside the index. */
const BATCH = 32;
const KEYS_PER_TURN = 128;
/** The store is not listed more often than this after the first time. */
const LISTING_PAUSE_MS = 10_000;
/** So many more vectors than when the store was last listed, and as many again, may be of entries that are gone. */
const UNLISTED = 1_000;

export class IndexSync {
  readonly #options: IndexSyncOptions;
  readonly #journal: ChangeFeed;
  #built: Promise<void> | undefined;
  #isBuilt = false;
  /** The latest reading of the journal, settled when it failed as well. */
  #learning: Promise<void> = Promise.resolve();
  #nextLearning: Promise<void> | undefined;
  #listing: Promise<void> | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #sizeWhenListed = 0;
  /** Something was missed that only listing can tell. */
  #isListingOwed = false;
  #canList = true;

  constructor(options: IndexSyncOptions) {
    this.#options = options;
    this.#journal = new ChangeFeed(options.space.namespace("semantic-journal"), options.clock);
  }

  get isBuilt(): boolean {
    return this.#isBuilt;
  }

  /** Resolves when the index has what the store has. A failed attempt is told to its callers; the next call makes another. */
  ready(): Promise<void> {
    this.#built ??= this.#build().catch((error: unknown) => {
      this.#built = undefined;
      throw error;
    });
    return this.#built;
  }

  /** Learns what others have stored. Says whether there is anything new. `waits`: also for a listing, if one is needed. */
  async catchUp({ waits }: { readonly waits: boolean }): Promise<boolean> {
    const before = this.#options.index.order;
    await this.#learnNext();
    const listing = this.#isListingOwed ? this.#listSometimes() : this.#listing;
    if (waits) await listing;
    return this.#options.index.order > before;
  }

  /** This process has stored a vector. Resolves once other processes can find it; never rejects. */
  async stored(key: string, vector: Float32Array): Promise<void> {
    const { index, report } = this.#options;
    try {
      index.set(key, vector);
      this.#listIfDoubled();
      await this.#journal.announce(key);
    } catch (error) {
      report(toError(error));
    }
  }

  /** All who call while one reading is under way share the next: that one may have begun before what they must know. */
  #learnNext(): Promise<void> {
    this.#nextLearning ??= this.#learning.then(() => {
      this.#nextLearning = undefined;
      const learning = this.#learn();
      this.#learning = learning.catch(() => {});
      return learning;
    });
    return this.#nextLearning;
  }

  async #learn(): Promise<void> {
    const { keys, isIncomplete } = await this.#journal.read();
    if (isIncomplete) this.#isListingOwed = true;
    await this.#addKeys(keys);
    this.#listIfDoubled();
  }

  /** Whoever stores and never asks has no index built, and then it is built now. */
  #listIfDoubled(): void {
    const { index, clock, report } = this.#options;
    if (!this.#canList || index.size <= 2 * this.#sizeWhenListed + UNLISTED) return;
    if (clock.now() - this.#listedAt < LISTING_PAUSE_MS) return;
    const listing = this.#isBuilt ? this.#listSometimes() : this.ready();
    listing?.catch((error: unknown) => report(toError(error)));
  }

  async #build(): Promise<void> {
    // Before the listing: what is stored meanwhile is announced after it.
    const { keys } = await this.#journal.read();
    await this.#list();
    if (!this.#canList) await this.#addKeys(keys);
    this.#isBuilt = true;
  }

  /** In the background: its failure is told to nobody who waits. Undefined when it was done just now. */
  #listSometimes(): Promise<void> | undefined {
    const { clock, report } = this.#options;
    if (!this.#canList || !this.#isBuilt) return undefined;
    if (this.#listing !== undefined || clock.now() - this.#listedAt < LISTING_PAUSE_MS) return this.#listing;
    this.#isListingOwed = false;
    this.#listing = this.#list()
      .catch((error: unknown) => {
        this.#isListingOwed = true;
        report(toError(error));
      })
      .finally(() => {
        this.#listing = undefined;
      });
    return this.#listing;
  }

  /** Adds what is missing and drops what is gone. */
  async #list(): Promise<void> {
    const { space, index, clock } = this.#options;
    this.#listedAt = clock.now();
    const since = index.order;
    const seen = new Set<number>();
    let unknown: string[] = [];
    let listed = 0;
    try {
      for await (const key of space.keys()) {
        const order = index.orderOf(key);
        if (order !== undefined) seen.add(order);
        else if (index.hasRoom) unknown.push(key);
        if (unknown.length === BATCH) {
          await this.#addKeys(unknown);
          unknown = [];
        }
        if (++listed % KEYS_PER_TURN === 0) await nextTurn();
      }
    } catch (error) {
      if (!(error instanceof UnsupportedError)) throw error;
      this.#cannotList(error);
      return;
    }
    await this.#addKeys(unknown);
    for (const { key, order } of index.entries()) {
      if (order <= since && !seen.has(order)) index.delete(key, order);
    }
    this.#sizeWhenListed = index.size;
    this.#listedAt = clock.now();
  }

  #cannotList(error: UnsupportedError): void {
    this.#canList = false;
    process.emitWarning(
      `${error.message}: a semantic cache on it finds by likeness only what was stored since it was opened`,
      "XCacheWarning",
    );
  }

  async #addKeys(keys: readonly string[]): Promise<void> {
    const { space, index, vectorOf } = this.#options;
    for (let from = 0; from < keys.length; from += BATCH) {
      const batch = keys.slice(from, from + BATCH);
      for (const [key, found] of await readEntries(space, batch)) {
        const vector = vectorOf(found);
        if (vector !== undefined && !index.has(key)) index.set(key, vector);
      }
      await nextTurn();
    }
  }
}
