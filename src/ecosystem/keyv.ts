// A store for Keyv 4, 5 and 6. Keyv namespaces become namespaces of the cache, so clear() is a single write.
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { type CacheEvents, toError } from "../core/events.ts";
import type { XCache } from "../xcache.ts";
import { type CacheSource, type ResolvedCache, resolveCacheSource } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface KeyvStoreOptions {
  /**
   * Whether `has`, `hasMany` and `getMany` reject when the store fails; Keyv passes their result on regardless of its own
   * `throwOnErrors`. Default: false: they report a miss. The error is emitted either way.
   */
  readonly throwOnErrors?: boolean;
}

/** What `setMany` of Keyv takes; `ttl` in milliseconds. */
interface KeyvEntry {
  readonly key: string;
  readonly value: unknown;
  readonly ttl?: number | null | undefined;
}

/** Keyv 5 declares that nothing is returned, although it uses the list that Keyv 6 declares. */
// biome-ignore lint/suspicious/noConfusingVoidType: what Keyv 5 declares.
type SetManyResult = boolean[] & void;

type ErrorListener = (error: Error) => void;

const NAMESPACE = "keyv";
const ITERATION_BATCH = 100;

/** Keyv uses milliseconds; a value without a ttl never expires. */
function secondsOf(ttlMs: number | undefined): number {
  return ttlMs === undefined || ttlMs === 0 ? Number.POSITIVE_INFINITY : Math.ceil(ttlMs) / 1000;
}

/**
 * `new Keyv({ store: new XCacheKeyvStore(cache) })`, one store per Keyv.
 */
export class XCacheKeyvStore {
  /** Keyv offers its iterator only for dialects it knows. */
  readonly opts = { dialect: "redis", url: "" };
  readonly #resolved: ResolvedCache;
  readonly #throwsOnErrors: boolean;
  readonly #listeners: ErrorListener[] = [];
  readonly #forward = ({ error }: CacheEvents["error"]): void => this.#emit(error);
  #namespace: string | undefined;
  #cache: XCache;

  /** Throws ConfigError for an invalid configuration or invalid options. */
  constructor(source: CacheSource, options: KeyvStoreOptions = {}) {
    requireOptions(options, ["throwOnErrors"]);
    this.#throwsOnErrors = requireFlag(options.throwOnErrors, "throwOnErrors", false);
    this.#resolved = resolveCacheSource(source);
    this.#cache = this.#cacheFor(undefined);
    this.#cache.on("error", this.#forward);
  }

  get namespace(): string | undefined {
    return this.#namespace;
  }

  /** Set by Keyv. */
  set namespace(name: string | undefined) {
    this.#cache.off("error", this.#forward);
    this.#namespace = name;
    this.#cache = this.#cacheFor(name);
    this.#cache.on("error", this.#forward);
  }

  /** Rejects when the store fails: Keyv decides whether its caller sees the error, but does not emit it. */
  async get<Value>(key: string): Promise<Value | undefined> {
    try {
      return await this.#cache.get<Value>(key);
    } catch (error) {
      this.#emit(error);
      throw error;
    }
  }

  async getMany<Value>(keys: string[]): Promise<(Value | undefined)[]> {
    return this.#readOr(
      async () => {
        const found = await this.#cache.getMany<Value>(keys);
        return keys.map((key) => found.get(key));
      },
      () => keys.map(() => undefined),
    );
  }

  /** `ttl` in milliseconds. A negative one deletes the key. */
  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    if (ttl !== undefined && ttl < 0) await this.#cache.delete(key);
    else await this.#cache.set(key, value, { ttl: secondsOf(ttl) });
    return true;
  }

  /** The writes reach the store in one batch. Returns for each whether it was stored. */
  async setMany(entries: readonly KeyvEntry[]): Promise<SetManyResult> {
    const outcomes = await Promise.allSettled(
      entries.map(({ key, value, ttl }) => this.set(key, value, ttl ?? undefined)),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined && this.#throwsOnErrors) throw failed.reason;
    for (const outcome of outcomes) if (outcome.status === "rejected") this.#emit(outcome.reason);
    return outcomes.map(({ status }) => status === "fulfilled") as SetManyResult;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#cache.delete(key)) > 0;
  }

  /** Whether any of them was present. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return (await this.#cache.delete(keys)) > 0;
  }

  /** Clears the current namespace only. */
  clear(): Promise<void> {
    return this.#cache.clear();
  }

  has(key: string): Promise<boolean> {
    return this.#readOr(
      () => this.#cache.exists(key),
      () => false,
    );
  }

  hasMany(keys: string[]): Promise<boolean[]> {
    return this.#readOr(
      () => Promise.all(keys.map((key) => this.#cache.exists(key))),
      () => keys.map(() => false),
    );
  }

  /** Keys as stored, including Keyv's prefix. A key may come twice during concurrent writes. */
  async *iterator<Value>(
    namespace = this.#namespace,
  ): AsyncGenerator<(string | Awaited<Value> | undefined)[], void> {
    const cache = this.#cacheFor(namespace);
    for await (const keys of batches(cache.keys())) {
      // Keyv fails on an entry without a value, so entries removed in the meantime are skipped.
      for (const pair of await cache.getMany<Awaited<Value>>(keys)) yield [...pair];
    }
  }

  /** Keyv listens for `error`: background failures, and failed reads that were answered as misses. */
  on(event: string, listener: ErrorListener): this {
    if (event === "error") this.#listeners.push(listener);
    return this;
  }

  /** Closes the cache if it was created from a configuration here; otherwise only removes the error listener. */
  disconnect(): Promise<void> {
    this.#cache.off("error", this.#forward);
    return this.#resolved.release();
  }

  #cacheFor(namespace: string | undefined): XCache {
    return this.#resolved.cache.namespace(namespace ? `${NAMESPACE}:${namespace}` : NAMESPACE);
  }

  async #readOr<T>(read: () => Promise<T>, nothing: () => T): Promise<T> {
    try {
      return await read();
    } catch (error) {
      this.#emit(error);
      if (this.#throwsOnErrors) throw error;
      return nothing();
    }
  }

  #emit(thrown: unknown): void {
    for (const listener of this.#listeners) listener(toError(thrown));
  }
}

async function* batches(keys: AsyncIterable<string>): AsyncGenerator<string[], void> {
  let batch: string[] = [];
  for await (const key of keys) {
    if (batch.push(key) < ITERATION_BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
