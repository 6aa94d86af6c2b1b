// A working in-memory cache with just what wrapped functions use: single flight, tags, leases revoked by invalidation.
import type { GetOrSetOptions, Load, SetOptions } from "../../src/core/options.ts";
import type { CacheForFunctions } from "../../src/functions/default-cache.ts";

interface Flight {
  readonly result: Promise<unknown>;
  revoked: boolean;
}

export class FakeCache implements CacheForFunctions {
  readonly entries = new Map<string, { value: unknown; tags: readonly string[] }>();
  /** The options of every getOrSet, in order. */
  readonly seen: (GetOrSetOptions | undefined)[] = [];
  readonly #flights = new Map<string, Flight>();

  async getOrSet<T>(key: string, load: Load<T>, options?: GetOrSetOptions): Promise<T> {
    this.seen.push(options);
    const entry = this.entries.get(key);
    if (entry !== undefined && !options?.forceLoad) return entry.value as T;
    const running = this.#flights.get(key);
    if (running !== undefined) return (await running.result) as T;
    const flight: Flight = { result: this.#fly(key, load, options, () => flight), revoked: false };
    this.#flights.set(key, flight);
    return (await flight.result) as T;
  }

  async #fly<T>(
    key: string,
    load: Load<T>,
    options: GetOrSetOptions | undefined,
    flight: () => Flight,
  ): Promise<T> {
    await Promise.resolve();
    let stored = true;
    const tags = [...(options?.tags ?? [])];
    try {
      const value = await load({
        signal: new AbortController().signal,
        stale: undefined,
        setTtl() {},
        setTags: (more) => tags.push(...more),
        skip() {
          stored = false;
        },
      });
      if (stored && !flight().revoked && value !== undefined) this.entries.set(key, { value, tags });
      return value;
    } finally {
      if (this.#flights.get(key) === flight()) this.#flights.delete(key);
    }
  }

  async delete(key: string): Promise<number> {
    this.#revoke(key);
    return this.entries.delete(key) ? 1 : 0;
  }

  async set(key: string, value: unknown, options?: SetOptions): Promise<void> {
    this.#revoke(key);
    this.entries.set(key, { value, tags: [options?.tags ?? []].flat() });
  }

  #revoke(key: string): void {
    const flight = this.#flights.get(key);
    if (flight !== undefined) flight.revoked = true;
    this.#flights.delete(key);
  }
}
