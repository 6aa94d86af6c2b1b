// class SemanticCache: answers to texts, found again by texts that are alike.
import { requireOptions, requireValue } from "../core/arguments.ts";
import { requireLoad } from "../core/entry-options.ts";
import { MissingPeerError } from "../core/errors.ts";
import { type CacheEvents, Emitter, type Listener, toError } from "../core/events.ts";
import type { GetOrSetOptions, Load, LoadAs, LoadContext, SetOptions } from "../core/options.ts";
import type { XCache } from "../xcache.ts";
import { type ChangeCount, changesOf } from "./change-count.ts";
import { FreshVectors } from "./fresh-vectors.ts";
import { answerTo, type HandedOut, handOut, ofTheValue } from "./handed-out.ts";
import {
  requireThat,
  requireThreshold,
  type SemanticCacheOptions,
  type Settings,
  settingsOf,
} from "./options.ts";
import { closedError, type SemanticMatch, Similarity } from "./similarity.ts";
import { keyOf, type StoredAnswer } from "./stored-answer.ts";

export interface SearchOptions {
  /** The most matches to return, 1 to 1,000. Default: 10. */
  readonly limit?: number;
  /** The least score of a match. Default: that of the cache. */
  readonly threshold?: number;
}

/** What happened in this object. */
export interface SemanticStats {
  /** Texts answered with the answer to another text. */
  readonly likeHits: number;
  /** Loads that were run because nothing was found. */
  readonly loads: number;
  /** Failures that no caller saw: of the embedder, the store, the index. */
  readonly failures: number;
  /** Vectors in memory. */
  readonly vectors: number;
  /** Whether searches are approximate. */
  readonly usesGraph: boolean;
}

/** `hit`: the answer stored under `key` was given for another text. `miss`: a load is run. `error`: told to no caller. */
export type SemanticEvent = "hit" | "miss" | "error";

const EVENTS: readonly unknown[] = ["hit", "miss", "error"] satisfies SemanticEvent[];

const MOST_MATCHES = 1_000;

/**
 * Remembers answers and gives them again for texts that are alike. Answers are entries of a namespace of the cache, each
 * with its vector, so they follow its ttl, tags, clear() and eviction. Direct operations throw typed errors; getOrSet
 * runs the load instead.
 */
export class SemanticCache {
  readonly #settings: Settings;
  readonly #space: XCache;
  readonly #likeness: Similarity;
  readonly #events = new Emitter();
  readonly #changes: ChangeCount;
  readonly #fresh: FreshVectors;
  readonly #stopListening: () => void;
  /** The key of the load whose synchronous part is running right now. */
  #running: string | undefined;
  #isClosed = false;
  #likeHits = 0;
  #loads = 0;
  #failures = 0;

  /** Throws ConfigError. Nothing is read before the first use. */
  constructor(options: SemanticCacheOptions) {
    this.#settings = settingsOf(options);
    this.#space = this.#settings.space;
    this.#likeness = new Similarity(this.#settings, (error) => this.#failed("index", error));
    this.#fresh = new FreshVectors(this.#settings.clock, (key, vector) => this.#likeness.stored(key, vector));
    this.#changes = changesOf(this.#space);
    this.#stopListening = this.#listen();
  }

  /**
   * The stored answer to this text, or to the nearest one whose score reaches the threshold, or what `load` returns, which
   * is then stored. One load per text at a time. A failing embedder or store never fails the call; a failing load does.
   */
  async getOrSet<T, S = T>(text: string, load: LoadAs<T, S>, options?: GetOrSetOptions): Promise<T> {
    const key = this.#keyOf(text);
    requireLoad(load);
    requireThat(this.#running !== key, "load must not ask for the text it loads", text);
    for (let terms = options; ; ) {
      const calledAt = this.#changes.value;
      const given = await this.#ask(key, text, load as unknown as Load<T>, terms);
      const answer = answerTo(text, given);
      // Something else stands under this key: it makes room.
      if (answer === undefined) terms = replacing(options);
      // The answer of another text was read for a caller before this one, and things have changed in between.
      else if (answer.readAt >= calledAt) {
        await this.#fresh.announced(key);
        return answer.value as T;
      }
    }
  }

  /** The stored answer to this text, or to the nearest one; undefined when there is none. */
  async get<T = unknown>(text: string): Promise<T | undefined> {
    const exact = answerTo(text, await this.#space.get(this.#keyOf(text)));
    if (exact !== undefined) return exact.value as T;
    const match = await this.#likeness.nearest(await this.#likeness.vectorOf(text));
    if (match !== undefined) this.#hit(match);
    return match?.value as T | undefined;
  }

  /** Stores an answer for `ttl` seconds under `tags`. Throws EmbeddingError where the text cannot be embedded. */
  async set(text: string, value: unknown, options?: SetOptions): Promise<void> {
    const key = this.#keyOf(text);
    requireValue(value);
    const vector = await this.#likeness.vectorOf(text);
    const answer: StoredAnswer = { text, model: this.#settings.model, vector, value };
    this.#fresh.remember(key, vector);
    try {
      await this.#space.set(key, answer, options);
    } catch (error) {
      throw ofTheValue(error);
    }
    await this.#fresh.announced(key);
  }

  /** Stored answers to texts like this one, best first, equal scores by key. */
  async search<T = unknown>(text: string, options: SearchOptions = {}): Promise<SemanticMatch<T>[]> {
    this.#keyOf(text);
    requireOptions(options, ["limit", "threshold"]);
    const { limit = 10, threshold = this.#settings.threshold } = options;
    const isLimit = Number.isInteger(limit) && limit >= 1 && limit <= MOST_MATCHES;
    requireThat(isLimit, `limit must be a whole number from 1 to ${MOST_MATCHES}`, limit);
    requireThreshold(threshold, this.#settings.metric);
    const vector = await this.#likeness.vectorOf(text);
    return (await this.#likeness.search(vector, { limit, threshold })) as SemanticMatch<T>[];
  }

  /** Removes the answer to exactly this text; whether there was one. */
  async delete(text: string): Promise<boolean> {
    return (await this.#space.delete(this.#keyOf(text))) > 0;
  }

  /** As of the namespace: every answer stored under one of the tags is gone once this resolves. */
  async invalidateTags(tags: string | readonly string[]): Promise<void> {
    this.#requireOpen();
    await this.#space.invalidateTags(tags);
  }

  /** Removes all answers. */
  async clear(): Promise<void> {
    this.#requireOpen();
    await this.#likeness.clear(() => this.#space.clear());
  }

  /** Optional: builds the index now instead of at the first use. */
  async ready(): Promise<void> {
    this.#requireOpen();
    await this.#likeness.ready();
  }

  getStats(): SemanticStats {
    return {
      likeHits: this.#likeHits,
      loads: this.#loads,
      failures: this.#failures,
      vectors: this.#likeness.size,
      usesGraph: this.#likeness.usesGraph,
    };
  }

  on<E extends SemanticEvent>(event: E, listener: Listener<E>): this {
    requireListener(event, listener);
    this.#events.add(event, listener);
    return this;
  }

  off<E extends SemanticEvent>(event: E, listener: Listener<E>): this {
    requireListener(event, listener);
    this.#events.remove(event, listener);
    return this;
  }

  /** Frees the index and stops listening to the cache, which stays open. Later calls are refused. */
  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#likeness.close();
  }

  async #ask<T>(key: string, text: string, load: Load<T>, options?: GetOrSetOptions): Promise<unknown> {
    const isForced = options?.forceLoad === true;
    const answer = (context: LoadContext<unknown>): Promise<StoredAnswer | HandedOut> =>
      this.#answer(key, text, load, context, isForced);
    // The cache asks a function how many parameters it declares: one without cannot name tags.
    const asked = load.length > 0 ? answer : (...given: [LoadContext<unknown>?]) => answer(given[0]!);
    try {
      return await this.#space.getOrSet<unknown, unknown>(key, asked, options);
    } catch (error) {
      throw ofTheValue(error);
    }
  }

  /** The load of the entry: for all who ask for this text, in all processes, one at a time. */
  async #answer<T>(
    key: string,
    text: string,
    load: Load<T>,
    context: LoadContext<unknown>,
    isForced: boolean,
  ): Promise<StoredAnswer | HandedOut> {
    const vector = await this.#unlessFailing(() => this.#likeness.vectorOf(text));
    if (vector !== undefined && !isForced) {
      const readAt = this.#changes.value;
      const match = await this.#unlessFailing(() => this.#likeness.nearest(vector));
      if (match !== undefined) {
        this.#hit(match);
        context.skip();
        return handOut(text, match.value, readAt);
      }
    }
    this.#loads++;
    this.#events.emit("miss", { key });
    const value = await this.#run(key, load, {
      signal: context.signal,
      stale: answerTo(text, context.stale)?.value as T | undefined,
      setTtl: (seconds) => context.setTtl(seconds),
      setTags: (tags) => context.setTags(tags),
      skip: () => context.skip(),
    });
    if (value === undefined) {
      context.skip();
      return handOut(text, value, Number.POSITIVE_INFINITY);
    }
    if (vector !== undefined) this.#fresh.remember(key, vector);
    return { text, model: this.#settings.model, vector: vector ?? null, value };
  }

  #run<T>(key: string, load: Load<T>, context: LoadContext<T>): T | Promise<T> {
    const outer = this.#running;
    this.#running = key;
    try {
      return load(context);
    } finally {
      this.#running = outer;
    }
  }

  async #unlessFailing<R>(work: () => Promise<R>): Promise<R | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#failed("getOrSet", toError(error));
      return undefined;
    }
  }

  #listen(): () => void {
    const written = ({ key }: CacheEvents["set"]): void => this.#fresh.written(key);
    this.#space.on("set", written);
    return () => {
      this.#space.off("set", written);
    };
  }

  #hit({ key }: SemanticMatch): void {
    this.#likeHits++;
    this.#events.emit("hit", { key });
  }

  #failed(operation: string, error: Error): void {
    this.#failures++;
    if (error instanceof MissingPeerError) process.emitWarning(error.message, "XCacheWarning");
    this.#events.emit("error", { error, operation });
  }

  #requireOpen(): void {
    if (this.#isClosed) throw closedError();
  }

  /** The key of a text. */
  #keyOf(text: unknown): string {
    this.#requireOpen();
    requireThat(typeof text === "string" && text.length > 0, "text must be a non-empty string", text);
    return keyOf(text as string);
  }
}

/** For a load whose answer takes the place of something else, which must not be given in its stead. */
function replacing({ softTimeout: _, ...options }: GetOrSetOptions = {}): GetOrSetOptions {
  return { ...options, forceLoad: true, staleIfError: 0, staleWhileRevalidate: 0 };
}

function requireListener(event: unknown, listener: unknown): void {
  requireThat(EVENTS.includes(event), `event must be one of ${EVENTS.join(", ")}`, event);
  requireThat(typeof listener === "function", "listener must be a function", listener);
}
