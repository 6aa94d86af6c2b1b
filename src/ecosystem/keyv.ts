// A store for Keyv 5: its namespaces become namespaces of the cache, so that clear() costs one write.
import type { KeyvStoreAdapter, StoredData } from "keyv";
import { requireFlag, requireOptions } from "../core/arguments.ts";
import { type CacheEvents, toError } from "../core/events.ts";
import type { XCache } from "../xcache.ts";
import { type CacheSource, type HeldCache, holdCache } from "./cache-source.ts";

export type { CacheSource } from "./cache-source.ts";

export interface KeyvStoreOptions {
  /**
   * Whether `has`, `hasMany` and `getMany` reject when the store fails; Keyv passes on what they do, whatever its own
   * `throwOnErrors` says. Default: false, they answer as if nothing was there. The error is emitted either way.
   */
  readonly throwOnErrors?: boolean;
}

type ErrorListener = (error: Error) => void;

const NAMESPACE = "keyv";
const ITERATED_AT_ONCE = 100;

/** Keyv counts in milliseconds; a value without a lifetime is kept for ever. */
function secondsOf(ttlMs: number | undefined): number {
  return ttlMs === undefined || ttlMs === 0 ? Number.POSITIVE_INFINITY : Math.ceil(ttlMs) / 1000;
}

/**
 * One for each Keyv: `new Keyv({ store: new XCacheKeyvStore(cache) })`. There is no `setMany`: Keyv then sets one by one,
 * which go to the store together, and tells of each whether it was stored.
 */
export class XCacheKeyvStore implements KeyvStoreAdapter {
  /** Keyv offers its iterator only for stores of a kind it knows. */
  readonly opts = { dialect: "redis", url: "" };
  readonly #held: HeldCache;
  readonly #throwsOnErrors: boolean;
  readonly #listeners: ErrorListener[] = [];
  readonly #forward = ({ error }: CacheEvents["error"]): void => this.#emit(error);
  #namespace: string | undefined;
  #space: XCache;

  /** Throws ConfigError for a configuration or options that cannot be. */
  constructor(source: CacheSource, options: KeyvStoreOptions = {}) {
    requireOptions(options, ["throwOnErrors"]);
    this.#throwsOnErrors = requireFlag(options.throwOnErrors, "throwOnErrors", false);
    this.#held = holdCache(source);
    this.#space = this.#spaceOf(undefined);
    this.#space.on("error", this.#forward);
  }

  get namespace(): string | undefined {
    return this.#namespace;
  }

  /** Set by Keyv. */
  set namespace(name: string | undefined) {
    this.#space.off("error", this.#forward);
    this.#namespace = name;
    this.#space = this.#spaceOf(name);
    this.#space.on("error", this.#forward);
  }

  /** Rejects when the store fails: Keyv decides whether its caller sees that, but does not emit it. */
  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    try {
      return await this.#space.get<StoredData<Value>>(key);
    } catch (error) {
      this.#emit(error);
      throw error;
    }
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return this.#reading(
      async () => {
        const found = await this.#space.getMany<StoredData<Value>>(keys);
        return keys.map((key) => found.get(key));
      },
      () => keys.map(() => undefined),
    );
  }

  /** `ttl`: milliseconds. One that is over already leaves nothing behind. */
  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    if (ttl !== undefined && ttl < 0) await this.#space.delete(key);
    else await this.#space.set(key, value, { ttl: secondsOf(ttl) });
    return true;
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#space.delete(key)) > 0;
  }

  /** Whether any of them was there. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return (await this.#space.delete(keys)) > 0;
  }

  /** Empties the present namespace, and no other. */
  clear(): Promise<void> {
    return this.#space.clear();
  }

  has(key: string): Promise<boolean> {
    return this.#reading(
      () => this.#space.exists(key),
      () => false,
    );
  }

  hasMany(keys: string[]): Promise<boolean[]> {
    return this.#reading(
      () => Promise.all(keys.map((key) => this.#space.exists(key))),
      () => keys.map(() => false),
    );
  }

  /** Keys as they were set, with what Keyv put before them; one may come twice while others are written. */
  async *iterator<Value>(
    namespace = this.#namespace,
  ): AsyncGenerator<(string | Awaited<Value> | undefined)[], void> {
    const space = this.#spaceOf(namespace);
    for await (const keys of batches(space.keys())) {
      // Keyv cannot stand an entry without a value: one that has gone meanwhile is left out.
      for (const pair of await space.getMany<Awaited<Value>>(keys)) yield [...pair];
    }
  }

  /** Keyv listens for `error`: what fails in the background, and what a read did not say otherwise. */
  on(event: string, listener: ErrorListener): this {
    if (event === "error") this.#listeners.push(listener);
    return this;
  }

  /** Closes a cache that was made from a configuration here; any other is not listened to any more. */
  disconnect(): Promise<void> {
    this.#space.off("error", this.#forward);
    return this.#held.release();
  }

  #spaceOf(namespace: string | undefined): XCache {
    return this.#held.cache.namespace(namespace ? `${NAMESPACE}:${namespace}` : NAMESPACE);
  }

  async #reading<T>(read: () => Promise<T>, nothing: () => T): Promise<T> {
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
    if (batch.push(key) < ITERATED_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
