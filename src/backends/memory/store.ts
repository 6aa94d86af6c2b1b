// The memory store: a bounded table shared by its namespaces, with a sweeper for expired entries.

import type { Backend } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { Copier } from "../../core/codec.ts";
import type { Handing } from "../../core/frozen.ts";
import type { Namespace, Store } from "../../core/namespace.ts";
import { Observers } from "../../core/shared/observers.ts";
import type { MemoryCore } from "./entry-view.ts";
import type { Page } from "./layout/page.ts";
import { MemoryNamespace } from "./memory-namespace.ts";
import { Sweeper } from "./sweeper.ts";
import { Table } from "./table.ts";
import type { TagSet } from "./tag-set.ts";

/** The bounds of a memory store, and how it returns values. */
export interface MemorySettings {
  readonly maxEntries: number;
  readonly maxBytes: number | (() => number);
  readonly values: Handing;
}

export class MemoryStore implements Store {
  readonly backend: Backend;
  readonly breaker = undefined;
  readonly observers = new Observers();
  readonly #core: MemoryCore;
  readonly #sweeper: Sweeper;
  readonly #roots = new Map<string, MemoryNamespace>();
  readonly #owners = new Map<Page, MemoryNamespace>();

  constructor(backend: Backend, settings: MemorySettings, clock: Clock, codec: Copier) {
    this.backend = backend;
    const { maxEntries, maxBytes, values } = settings;
    const table = new Table<TagSet>({
      maxEntries,
      maxBytes,
      clock,
      onEvict: (page, key) => this.#evicted(page, key),
    });
    this.#core = { table, clock, codec, values, measuresBytes: table.countsBytes };
    this.#sweeper = new Sweeper(table, clock);
    this.#sweeper.start();
  }

  namespace(prefix: string): Namespace {
    // Another cache on this store may have stopped the sweeper by disconnecting.
    this.#sweeper.start();
    let namespace = this.#roots.get(prefix);
    if (namespace === undefined) {
      namespace = new MemoryNamespace(this.#core, (opened) => this.#owners.set(opened.page, opened));
      this.#roots.set(prefix, namespace);
    }
    return namespace;
  }

  async connect(): Promise<void> {
    this.#sweeper.start();
  }

  async disconnect(): Promise<void> {
    this.#sweeper.stop();
  }

  async ping(): Promise<void> {}

  memoryUsage(): number {
    const { table } = this.#core;
    const byBytes = table.countsBytes ? table.bytes / table.maxBytes : 0;
    return Math.max(table.size / table.maxEntries, byBytes);
  }

  #evicted(page: Page, key: string): void {
    const namespace = this.#owners.get(page);
    if (namespace !== undefined) this.observers.evicted(namespace, key);
  }
}
