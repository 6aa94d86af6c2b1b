// class SemanticCache: answers to texts, found again by similar texts.
import { requireOptions, requireValue } from "../core/arguments.ts";
import { requireLoad } from "../core/entry-options.ts";
import { MissingPeerError } from "../core/errors.ts";
import { type CacheEvents, Emitter, type Listener, toError } from "../core/events.ts";
import type { GetOrSetOptions, Load, LoadAs, LoadContext, SetOptions } from "../core/options.ts";
import type { XCache } from "../xcache.ts";
import { FreshVectors } from "./fresh-vectors.ts";
import {
  answerTo,
  type ChangeCount,
  changesOf,
  type UnstoredAnswer,
  unstored,
  withValuePath,
} from "./load-result.ts";
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
  /** The least score of a match. Default: the cache's threshold. */
  readonly threshold?: number;
}

/** Counts of this object. */
export interface SemanticStats {
  /** Texts that got the answer to a similar text. */
  readonly likeHits: number;
  /** Loads run because nothing was found. */
  readonly loads: number;
  /** Failures of the embedder, the store or the index that no caller saw. */
  readonly failures: number;
  /** Vectors in memory. */
  readonly vectors: number;
  /** Whether searches are approximate. */
  readonly usesGraph: boolean;
}

/** `hit`: a similar text got the answer stored under `key`. `miss`: a load runs. `error`: a failure no caller saw. */
export type SemanticEvent = "hit" | "miss" | "error";

const EVENTS: readonly unknown[] = ["hit", "miss", "error"] satisfies SemanticEvent[];

const MOST_MATCHES = 1_000;

/**
 * Caches answers and returns them for similar texts. Answers are entries of a namespace of the cache, each with its vector,
 * so its ttl, tags, clear() and eviction apply. Direct operations throw typed errors; getOrSet runs the load instead.
 *
 * @example
 * ```ts
 * const answers = new SemanticCache({ cache, namespace: "faq", threshold: 0.7 });
 * await answers.getOrSet("How do I reset my password?", () => askModel(), { ttl: "1h" });
 * await answers.get("how can I reset my password"); // the same answer
 * ```
 */
export class SemanticCache {
  readonly #settings: Settings;
  readonly #namespace: XCache;
  readonly #similarity: Similarity;
  readonly #events = new Emitter();
  readonly #changes: ChangeCount;
  readonly #fresh: FreshVectors;
  readonly #stopListening: () => void;
  /** The key of the load whose synchronous part is currently running. */
  #running: string | undefined;
  #isClosed = false;
  #likeHits = 0;
  #loads = 0;
  #failures = 0;

  /** Throws ConfigError. Nothing is read before first use. */
  constructor(options: SemanticCacheOptions) {
    this.#settings = settingsOf(options);
    this.#namespace = this.#settings.namespace;
    this.#similarity = new Similarity(this.#settings, (error) => this.#failed("index", error));
    this.#fresh = new FreshVectors(this.#settings.clock, (key, vector) =>
      this.#similarity.stored(key, vector),
    );
    this.#changes = changesOf(this.#namespace);
    this.#stopListening = this.#listen();
  }

  /**
   * The stored answer to this text, else to the nearest text whose score reaches the threshold, else what `load` returns,
   * which is then stored. One load per text at a time. A failing embedder or store never fails the call, a failing load
   * does.
   */
  async getOrSet<T, S = T>(text: string, load: LoadAs<T, S>, options?: GetOrSetOptions): Promise<T> {
    const key = this.#keyOf(text);
    requireLoad(load);
    requireThat(this.#running !== key, "load must not call getOrSet for the text it loads", text);
    for (let loadOptions = options; ; ) {
      const calledAt = this.#changes.value;
      const result = await this.#load(key, text, load as unknown as Load<T>, loadOptions);
      const answer = answerTo(text, result);
      // The key holds something else, which is replaced.
      if (answer === undefined) loadOptions = replacing(options);
      // Else a similar text's answer was read for an earlier caller, and something changed since: try again.
      else if (answer.readAt >= calledAt) {
        await this.#fresh.announced(key);
        return answer.value as T;
      }
    }
  }

  /** The stored answer to this text or to the nearest one; undefined if there is none. */
  async get<T = unknown>(text: string): Promise<T | undefined> {
    const exact = answerTo(text, await this.#namespace.get(this.#keyOf(text)));
    if (exact !== undefined) return exact.value as T;
    const match = await this.#similarity.nearest(await this.#similarity.vectorOf(text));
    if (match !== undefined) this.#hit(match);
    return match?.value as T | undefined;
  }

  /** Stores an answer for `ttl` seconds under `tags`. Throws EmbeddingError if the text cannot be embedded. */
  async set(text: string, value: unknown, options?: SetOptions): Promise<void> {
    const key = this.#keyOf(text);
    requireValue(value);
    const vector = await this.#similarity.vectorOf(text);
    const answer: StoredAnswer = { text, model: this.#settings.model, vector, value };
    this.#fresh.remember(key, vector);
    try {
      await this.#namespace.set(key, answer, options);
    } catch (error) {
      throw withValuePath(error);
    }
    await this.#fresh.announced(key);
  }

  /** Stored answers to similar texts, best first, equal scores by key. */
  async search<T = unknown>(text: string, options: SearchOptions = {}): Promise<SemanticMatch<T>[]> {
    this.#keyOf(text);
    requireOptions(options, ["limit", "threshold"]);
    const { limit = 10, threshold = this.#settings.threshold } = options;
    const isLimit = Number.isInteger(limit) && limit >= 1 && limit <= MOST_MATCHES;
    requireThat(isLimit, `limit must be a whole number from 1 to ${MOST_MATCHES}`, limit);
    requireThreshold(threshold, this.#settings.metric);
    const vector = await this.#similarity.vectorOf(text);
    return (await this.#similarity.search(vector, { limit, threshold })) as SemanticMatch<T>[];
  }

  /** Removes the answer to exactly this text; returns whether there was one. */
  async delete(text: string): Promise<boolean> {
    return (await this.#namespace.delete(this.#keyOf(text))) > 0;
  }

  /** Like that of the namespace: no answer stored under one of the tags is returned once this resolves. */
  async invalidateTags(tags: string | readonly string[]): Promise<void> {
    this.#requireOpen();
    await this.#namespace.invalidateTags(tags);
  }

  /** Removes all answers. */
  async clear(): Promise<void> {
    this.#requireOpen();
    await this.#similarity.clear(() => this.#namespace.clear());
  }

  /** Optional: builds the index now instead of on first use. */
  async ready(): Promise<void> {
    this.#requireOpen();
    await this.#similarity.ready();
  }

  getStats(): SemanticStats {
    return {
      likeHits: this.#likeHits,
      loads: this.#loads,
      failures: this.#failures,
      vectors: this.#similarity.size,
      usesGraph: this.#similarity.usesGraph,
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

  /** Frees the index and stops listening to the cache, which stays open. Later calls throw. */
  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#similarity.close();
  }

  async #load<T>(key: string, text: string, load: Load<T>, options?: GetOrSetOptions): Promise<unknown> {
    const isForced = options?.forceLoad === true;
    const answer = (context: LoadContext<unknown>): Promise<StoredAnswer | UnstoredAnswer> =>
      this.#answer(key, text, load, context, isForced);
    // The cache reads the load's parameter count: without one a load cannot set tags.
    const wrapped = load.length > 0 ? answer : (...args: [LoadContext<unknown>?]) => answer(args[0]!);
    try {
      return await this.#namespace.getOrSet<unknown, unknown>(key, wrapped, options);
    } catch (error) {
      throw withValuePath(error);
    }
  }

  /** The load of the entry: one at a time per text, across all processes. */
  async #answer<T>(
    key: string,
    text: string,
    load: Load<T>,
    context: LoadContext<unknown>,
    isForced: boolean,
  ): Promise<StoredAnswer | UnstoredAnswer> {
    const vector = await this.#unlessFailing(() => this.#similarity.vectorOf(text));
    if (vector !== undefined && !isForced) {
      const readAt = this.#changes.value;
      const match = await this.#unlessFailing(() => this.#similarity.nearest(vector));
      if (match !== undefined) {
        this.#hit(match);
        context.skip();
        return unstored(text, match.value, readAt);
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
      return unstored(text, value, Number.POSITIVE_INFINITY);
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
    this.#namespace.on("set", written);
    return () => {
      this.#namespace.off("set", written);
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

  #keyOf(text: unknown): string {
    this.#requireOpen();
    requireThat(typeof text === "string" && text.length > 0, "text must be a non-empty string", text);
    return keyOf(text as string);
  }
}

/** Options for a load that replaces a foreign entry, which must never be served as a stale answer. */
function replacing({ softTimeout: _, ...options }: GetOrSetOptions = {}): GetOrSetOptions {
  return { ...options, forceLoad: true, staleIfError: 0, staleWhileRevalidate: 0 };
}

function requireListener(event: unknown, listener: unknown): void {
  requireThat(EVENTS.includes(event), `event must be one of ${EVENTS.join(", ")}`, event);
  requireThat(typeof listener === "function", "listener must be a function", listener);
}
