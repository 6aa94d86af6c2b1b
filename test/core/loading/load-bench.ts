// A loader on a real in-memory namespace, parts of which a test can replace.
import { MemoryBackend, type MemoryBackendOptions } from "../../../src/backends/memory/backend.ts";
import { createCodec } from "../../../src/codec/codec.ts";
import { resolveLoadOptions } from "../../../src/core/entry-options.ts";
import { BackendError } from "../../../src/core/errors.ts";
import { Loader } from "../../../src/core/loading/loader.ts";
import type { Loaded, StoreLookup } from "../../../src/core/loading/waiting-call.ts";
import type { Namespace } from "../../../src/core/namespace.ts";
import type { GetOrSetOptions, Load } from "../../../src/core/options.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";

const DEFAULTS = {
  defaultTtl: 300,
  ttlJitter: 0,
  staleIfError: 0,
  staleWhileRevalidate: 0,
  random: Math.random,
};

export const down = new BackendError("STORE_FAILED", "the store is down");

/** How a part of a namespace behaves when its store is down. */
export const fail = (): never => {
  throw down;
};

export class LoadBench {
  readonly clock = new ManualClock();
  readonly space: Namespace;
  readonly reported: Error[] = [];
  readonly stored: string[] = [];
  readonly loader: Loader;
  /** Replacements for parts of the namespace. */
  broken: Partial<Namespace> = {};

  constructor(options: MemoryBackendOptions = {}) {
    this.space = new MemoryBackend(options).store(this.clock, createCodec()).namespace("bench");
    this.loader = new Loader(this.space.changes, {
      clock: this.clock,
      loadLimitMs: 60_000,
      namespace: () => this.#present(),
      own: (value) => this.space.own(value),
      signal: () => new AbortController().signal,
      stored: (key) => this.stored.push(key),
      report: (error) => this.reported.push(error),
    });
  }

  /** What getOrSet does on a miss. */
  async load<T>(load: Load<T>, options?: GetOrSetOptions, key = "k", look?: StoreLookup): Promise<Loaded> {
    let loaded: Loaded | undefined;
    const observer = {
      ended: (outcome: Loaded | undefined) => {
        loaded = outcome;
      },
    };
    const value = await this.loader.load(key, load, resolveLoadOptions(options, DEFAULTS), observer, look);
    if (loaded === undefined) throw new Error("the observer was not called");
    return { ...loaded, value };
  }

  async value<T>(load: Load<T>, options?: GetOrSetOptions, key = "k"): Promise<T> {
    return (await this.load(load, options, key)).value as T;
  }

  #present(): Namespace {
    const { broken, space } = this;
    return new Proxy(space, {
      get: (target, name) => {
        const part: unknown = Reflect.get(broken, name) ?? Reflect.get(target, name, target);
        return typeof part === "function" ? part.bind(target) : part;
      },
    });
  }
}
