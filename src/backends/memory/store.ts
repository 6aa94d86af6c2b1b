// The memory store: a bounded table, swept of what has expired, shared by its namespaces.

import type { Backend } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { Codec } from "../../core/codec.ts";
import type { Namespace, Store } from "../../core/namespace.ts";
import { Observers } from "../../core/shared/observers.ts";
import type { Page } from "./layout/page.ts";
import { type MemoryCore, MemoryNamespace } from "./memory-namespace.ts";
import { Sweeper } from "./sweeper.ts";
import { Table } from "./table.ts";
import type { TagSet } from "./tag-set.ts";

/** What bounds a memory store, and how it hands out values. */
export interface MemorySettings {
  readonly maxEntries: number;
  readonly maxBytes: number;
  readonly values: "copy" | "shared";
}

export class MemoryStore implements Store {
  readonly backend: Backend;
  readonly breaker = undefined;
  readonly observers = new Observers();
  readonly #core: MemoryCore;
  readonly #sweeper: Sweeper;
  readonly #roots = new Map<string, MemoryNamespace>();
  readonly #owners = new Map<Page, MemoryNamespace>();

  constructor(backend: Backend & MemorySettings, clock: Clock, codec: Codec) {
    this.backend = backend;
    const table = new Table<TagSet>({
      maxEntries: backend.maxEntries,
      maxBytes: backend.maxBytes,
      clock,
      onEvict: (page, key) => this.#evicted(page, key),
    });
    this.#core = {
      table,
      clock,
      codec,
      sharesValues: backend.values === "shared",
      measuresBytes: backend.maxBytes !== Number.POSITIVE_INFINITY,
    };
    this.#sweeper = new Sweeper(table, clock);
    this.#sweeper.start();
  }

  namespace(prefix: string): Namespace {
    // Whoever asks is going to use it, also after another cache on this store has disconnected.
    this.#sweeper.start();
    let space = this.#roots.get(prefix);
    if (space === undefined) {
      space = new MemoryNamespace(this.#core, (opened) => this.#owners.set(opened.page, opened));
      this.#roots.set(prefix, space);
    }
    return space;
  }

  async connect(): Promise<void> {
    this.#sweeper.start();
  }

  async disconnect(): Promise<void> {
    this.#sweeper.stop();
  }

  async ping(): Promise<void> {}

  fill(): number {
    const { table } = this.#core;
    const byBytes = table.maxBytes === Number.POSITIVE_INFINITY ? 0 : table.bytes / table.maxBytes;
    return Math.max(table.size / table.maxEntries, byBytes);
  }

  #evicted(page: Page, key: string): void {
    const space = this.#owners.get(page);
    if (space !== undefined) this.observers.evicted(space, key);
  }
}
