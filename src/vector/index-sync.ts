// Keeps the index in sync with the store: builds it at the start, adds what other processes store and drops what is gone.
import type { Clock } from "../core/clock.ts";
import { UnsupportedError } from "../core/errors.ts";
import { nextTurn } from "../core/event-loop.ts";
import { toError } from "../core/events.ts";
import type { XCache } from "../xcache.ts";
import { ChangeFeed } from "./change-feed.ts";
import { readEntries } from "./stored-answer.ts";
import type { VectorIndex } from "./vector-index.ts";

export interface IndexSyncOptions {
  readonly namespace: XCache;
  readonly index: VectorIndex;
  readonly clock: Clock;
  /** The vector of an entry, if it belongs in the index. */
  readonly vectorOf: (found: unknown) => Float32Array | undefined;
  /** Called with errors of background work. */
  readonly report: (error: Error) => void;
}

/** Answers read at once; they are all the memory that building takes besides the index. */
const BATCH = 32;
const KEYS_PER_TURN = 128;
/** The least time between two listings of the store. */
const LISTING_INTERVAL_MS = 10_000;
/** The store is listed again once there are twice as many vectors as at the last listing, and this many more. */
const UNLISTED = 1_000;

export class IndexSync {
  readonly #options: IndexSyncOptions;
  readonly #feed: ChangeFeed;
  #built: Promise<void> | undefined;
  #isBuilt = false;
  /** The latest read of the feed; never rejects. */
  #reading: Promise<void> = Promise.resolve();
  #nextRead: Promise<void> | undefined;
  #listing: Promise<void> | undefined;
  #listedAt = Number.NEGATIVE_INFINITY;
  #sizeWhenListed = 0;
  /** Something was missed, which only a listing can find. */
  #needsListing = false;
  #canList = true;

  constructor(options: IndexSyncOptions) {
    this.#options = options;
    this.#feed = new ChangeFeed(options.namespace.namespace("semantic-journal"), options.clock);
  }

  get isBuilt(): boolean {
    return this.#isBuilt;
  }

  /** Resolves when the index matches the store. Rejects if building fails; the next call tries again. */
  ready(): Promise<void> {
    this.#built ??= this.#build().catch((error: unknown) => {
      this.#built = undefined;
      throw error;
    });
    return this.#built;
  }

  /** Adds what other processes stored; returns whether there was any. `waits`: also for a listing, if one is needed. */
  async catchUp({ waits }: { readonly waits: boolean }): Promise<boolean> {
    const before = this.#options.index.order;
    await this.#readNext();
    const listing = this.#needsListing ? this.#listIfDue() : this.#listing;
    if (waits) await listing;
    return this.#options.index.order > before;
  }

  /** This process has stored a vector. Resolves once other processes can find it; never rejects. */
  async stored(key: string, vector: Float32Array): Promise<void> {
    const { index, report } = this.#options;
    try {
      index.set(key, vector);
      this.#listIfDoubled();
      await this.#feed.announce(key);
    } catch (error) {
      report(toError(error));
    }
  }

  /** Calls during a read share the next one, because the current read may have begun before the change they need. */
  #readNext(): Promise<void> {
    this.#nextRead ??= this.#reading.then(() => {
      this.#nextRead = undefined;
      const reading = this.#readFeed();
      this.#reading = reading.catch(() => {});
      return reading;
    });
    return this.#nextRead;
  }

  async #readFeed(): Promise<void> {
    const { keys, isIncomplete } = await this.#feed.read();
    if (isIncomplete) this.#needsListing = true;
    await this.#addKeys(keys);
    this.#listIfDoubled();
  }

  /** A process that only stores never built the index; it is built here then. */
  #listIfDoubled(): void {
    const { index, clock, report } = this.#options;
    if (!this.#canList || index.size <= 2 * this.#sizeWhenListed + UNLISTED) return;
    if (clock.now() - this.#listedAt < LISTING_INTERVAL_MS) return;
    const listing = this.#isBuilt ? this.#listIfDue() : this.ready();
    listing?.catch((error: unknown) => report(toError(error)));
  }

  async #build(): Promise<void> {
    // Read before the listing: an entry stored during the listing is announced afterwards.
    const { keys } = await this.#feed.read();
    await this.#list();
    if (!this.#canList) await this.#addKeys(keys);
    this.#isBuilt = true;
  }

  /** In the background: failures go to `report`. Undefined if the store was listed just now. */
  #listIfDue(): Promise<void> | undefined {
    const { clock, report } = this.#options;
    if (!this.#canList || !this.#isBuilt) return undefined;
    if (this.#listing !== undefined || clock.now() - this.#listedAt < LISTING_INTERVAL_MS)
      return this.#listing;
    this.#needsListing = false;
    this.#listing = this.#list()
      .catch((error: unknown) => {
        this.#needsListing = true;
        report(toError(error));
      })
      .finally(() => {
        this.#listing = undefined;
      });
    return this.#listing;
  }

  /** Adds what is missing and drops what is gone. */
  async #list(): Promise<void> {
    const { namespace, index, clock } = this.#options;
    this.#listedAt = clock.now();
    const since = index.order;
    const seen = new Set<number>();
    let unknown: string[] = [];
    let listed = 0;
    try {
      for await (const key of namespace.keys()) {
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
      `${error.message}: a semantic cache on it finds similar texts only among those stored since it was opened`,
      "XCacheWarning",
    );
  }

  async #addKeys(keys: readonly string[]): Promise<void> {
    const { namespace, index, vectorOf } = this.#options;
    for (let from = 0; from < keys.length; from += BATCH) {
      const batch = keys.slice(from, from + BATCH);
      for (const [key, found] of await readEntries(namespace, batch)) {
        const vector = vectorOf(found);
        if (vector !== undefined && !index.has(key)) index.set(key, vector);
      }
      await nextTurn();
    }
  }
}
