// A shared store while its code is being loaded. Calls made meanwhile wait, and begin in their order.
import type { Backend, Restriction } from "../core/backend.ts";
import type { Copier } from "../core/codec.ts";
import { LazyModule } from "../core/lazy-module.ts";
import type { Namespace, Store } from "../core/namespace.ts";
import { toXCacheError } from "../core/resilience/store-failure.ts";
import { StoreFace } from "../core/shared/observers.ts";
import { DeferredNamespace } from "./deferred-namespace.ts";
import type { SharedStoreParts } from "./open-shared.ts";

type Code = typeof import("./open-shared.ts");
type Opened = ReturnType<Code["openShared"]>;

export const sharedCode = new LazyModule<Code>(async () => {
  try {
    return await import("./open-shared.ts");
  } catch (error) {
    throw toXCacheError(error, "load");
  }
});

export class DeferredStore extends StoreFace implements Store {
  readonly #given: Backend;
  readonly #parts: SharedStoreParts;
  readonly #copier: Copier;
  readonly #roots = new Map<string, DeferredNamespace<Code>>();
  #opened: Opened | undefined;

  constructor(backend: Backend, parts: SharedStoreParts, copier: Copier) {
    super(parts.config.circuitBreaker, parts.clock);
    this.#given = backend;
    this.#parts = parts;
    this.#copier = copier;
    // Ahead of the first call, which reports an error.
    sharedCode.call((code) => this.open(code)).catch(() => {});
  }

  open(code: Code): Opened {
    this.#opened ??= code.openShared(this.#given, this.#parts, this);
    return this.#opened;
  }

  get backend(): Backend {
    return this.#opened?.backend ?? this.#given;
  }

  namespace(prefix: string): Namespace {
    let namespace = this.#roots.get(prefix);
    if (namespace === undefined) {
      const { config, clock } = this.#parts;
      namespace = new DeferredNamespace({
        code: sharedCode,
        open: (code, face) => this.open(code).namespace(prefix, face),
        copier: this.#copier,
        clock,
        freezes: config.nearCache !== false && config.nearCache.values === "frozen",
      });
      this.#roots.set(prefix, namespace);
    }
    return namespace;
  }

  connect(): Promise<void> {
    return this.#call((store) => store.connect());
  }

  settle(): Promise<void> {
    return this.#call((store) => store.settle());
  }

  async disconnect(): Promise<void> {
    try {
      await this.#call((store) => store.disconnect());
    } catch (error) {
      // If the code cannot be loaded, there is nothing to close.
      if (this.#opened !== undefined) throw error;
    }
  }

  ping(): Promise<void> {
    return this.#call((store) => store.ping());
  }

  restrictions(spentMs?: number): Promise<readonly Restriction[]> {
    return this.#call((store) => store.restrictions(spentMs));
  }

  memoryUsage(): number {
    return this.#opened?.memoryUsage() ?? 0;
  }

  firstMemoryUsage(spentMs: number): Promise<number> {
    return this.#call((store) => store.firstMemoryUsage(spentMs));
  }

  #call<T>(begin: (store: Opened) => Promise<T>): Promise<T> {
    return this.#opened !== undefined && sharedCode.isReady
      ? begin(this.#opened)
      : sharedCode.call((code) => begin(this.open(code)));
  }
}
