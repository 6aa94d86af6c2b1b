// The near tier in front of a shared store: the memory store's table with one page per namespace.

import type { Clock } from "../../core/clock.ts";
import type { Handing } from "../../core/frozen.ts";
import type { KeptStamps, NearPage, NearTier } from "../../core/near/pushed-near.ts";
import type { Page } from "./layout/page.ts";
import { Sweeper } from "./sweeper.ts";
import { Table } from "./table.ts";

export interface NearOptions {
  readonly maxEntries: number;
  readonly maxBytes: number;
  readonly values: Handing;
}

/** Approximate bytes of an entry besides its key and value. */
const ENTRY_BYTES = 100;
/** Approximate ratio of a decoded value to its encoded bytes. */
const DECODED_GROWTH = 2;

export class MemoryNearTier implements NearTier {
  readonly values: Handing;
  readonly #table: Table<KeptStamps>;
  readonly #sweeper: Sweeper;

  constructor({ maxEntries, maxBytes, values }: NearOptions, clock: Clock) {
    this.values = values;
    this.#table = new Table({ maxEntries, maxBytes, clock });
    this.#sweeper = new Sweeper(this.#table, clock);
    this.#sweeper.start();
  }

  start(): void {
    this.#sweeper.start();
  }

  stop(): void {
    this.#sweeper.stop();
  }

  page(): NearPage {
    return new MemoryNearPage(this.#table);
  }
}

class MemoryNearPage implements NearPage {
  readonly #table: Table<KeptStamps>;
  readonly #page: Page;

  constructor(table: Table<KeptStamps>) {
    this.#table = table;
    this.#page = table.openPage();
  }

  peek(key: string): unknown {
    return this.#page.peek(key);
  }

  holds(key: string): boolean {
    const held = this.#table.find(this.#page, key);
    return held !== undefined && this.#table.clock.now() < held.expires;
  }

  declines(key: string): boolean {
    return this.#table.declines(this.#page, key);
  }

  keep(key: string, value: unknown, expires: number, tagSet: KeptStamps | undefined, bytes: number): boolean {
    return this.#table.put(this.#page, key, value, tagSet, expires, 0, counted(key, bytes));
  }

  drop(key: string): void {
    this.#table.remove(this.#page, key);
  }

  keys(): Iterable<string> {
    return this.#page.keys();
  }

  clear(): void {
    this.#table.clear(this.#page);
  }
}

const counted = (key: string, bytes: number): number => bytes * DECODED_GROWTH + key.length * 2 + ENTRY_BYTES;
