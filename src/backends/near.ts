// The in-process tier in front of a shared store: the memory store's table, with pages for the namespaces.
import type { Clock } from "../core/clock.ts";
import type { NearPage, NearSeal, NearTier } from "../core/near.ts";
import { Sweeper } from "./memory/expiry.ts";
import { Table } from "./memory/table.ts";

export interface NearOptions {
  readonly maxEntries: number;
  readonly maxBytes: number;
  readonly values: "copy" | "shared";
}

/** What an entry takes besides its key and its value's bytes, about. */
const ENTRY_BYTES = 100;
/** A decoded value takes about so many times its encoded bytes. */
const DECODED_GROWTH = 2;

export class MemoryNearTier implements NearTier {
  readonly sharesValues: boolean;
  readonly #table: Table<NearSeal>;

  constructor({ maxEntries, maxBytes, values }: NearOptions, clock: Clock) {
    this.sharesValues = values === "shared";
    this.#table = new Table({ maxEntries, maxBytes, clock });
    new Sweeper(this.#table, clock).start();
  }

  page(): NearPage {
    const table = this.#table;
    const page = table.openPage();
    return {
      peek: (key) => page.peek(key),
      keep: (key, value, expires, seal, bytes) => {
        table.put(page, key, value, seal, expires, 0, bytes * DECODED_GROWTH + key.length * 2 + ENTRY_BYTES);
      },
      drop: (key) => void table.remove(page, key),
      keys: () => page.keys(),
      clear: () => table.clear(page),
    };
  }
}
