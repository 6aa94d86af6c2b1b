// The counters of a namespace in a shared store: each row is a record, updated by compare-and-swap.
import type { KeyedRecord } from "../backend.ts";
import { type CounterRow, type Counters, sumOf } from "../counters.ts";
import { BackendError, CodecError } from "../errors.ts";
import { lifetimeMs } from "../invalidation/liveness.ts";
import type { Spelling } from "../keys.ts";
import type { Entry, StoreRecord } from "../record.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** A lost compare-and-swap is repeated on the newer row, at most this often. */
const MOST_ATTEMPTS = 32;

export class SharedCounters implements Counters {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;

  constructor(store: NamespaceHost, names: Spelling) {
    this.#store = store;
    this.#names = names;
  }

  now(): number {
    return this.#store.backend.now();
  }

  add(name: string, row: CounterRow, lifeMs: number): Promise<void> {
    const key = this.#names.own(name);
    const { backend, guard } = this.#store;
    return guard.run("counters", async () => {
      try {
        await this.#addTo(key, row, lifeMs);
      } catch (error) {
        if (!(error instanceof CodecError)) throw error;
        // A damaged row is overwritten.
        await backend.write({ key, ...this.#item(key, row, lifeMs) });
      }
    });
  }

  read(names: readonly string[]): Promise<readonly (CounterRow | undefined)[]> {
    const keys = names.map((name) => this.#names.own(name));
    return this.#store.guard.run("counters", async () => {
      const records = await this.#store.backend.readMany(keys, false);
      return records.map((record) => this.#rowOf(record));
    });
  }

  async #addTo(key: string, row: CounterRow, lifeMs: number): Promise<void> {
    const { backend } = this.#store;
    let present = await backend.read(key);
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const sum = sumOf(row, this.#rowOf(present) ?? []);
      const swapped = await backend.swap(key, present?.version, this.#item(key, sum, lifeMs));
      if (swapped.won) return;
      present = swapped.current;
    }
    // The caller keeps what was not added and tries again later.
    throw new BackendError(
      "STORE_FAILED",
      `a counter row changed ${MOST_ATTEMPTS} times while it was being updated`,
    );
  }

  #item(key: string, row: CounterRow, lifeMs: number): Omit<KeyedRecord, "key"> {
    const record = this.#entry(key, row, lifeMs);
    return { record, lifetimeMs: lifetimeMs(record, record.created) };
  }

  /** Carries no stamps: clear() does not reset the counters. */
  #entry(key: string, row: CounterRow, lifeMs: number): Entry {
    const created = this.now();
    const expires = created + lifeMs;
    return {
      kind: "entry",
      version: this.#store.clock.token(),
      key,
      namespaceStamps: [],
      tags: [],
      created,
      expires,
      staleUntil: expires,
      payload: this.#store.codec.encode(row),
    };
  }

  #rowOf(record: StoreRecord | undefined): CounterRow | undefined {
    if (record?.kind !== "entry") return undefined;
    try {
      const row = this.#store.codec.decode(record.payload);
      return isRow(row) ? row : undefined;
    } catch {
      return undefined;
    }
  }
}

function isRow(value: unknown): value is CounterRow {
  return Array.isArray(value) && value.every((item) => typeof item === "number" && Number.isFinite(item));
}
