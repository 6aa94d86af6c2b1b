// The ledger of a namespace in a shared store: each row a record, which is replaced only by whoever has seen it.
import type { KeyedRecord } from "../backend.ts";
import { type CounterRow, type Counters, sumOf } from "../counters.ts";
import { BackendError, CodecError } from "../errors.ts";
import { lifetimeMs } from "../invalidation/liveness.ts";
import type { Spelling } from "../keys.ts";
import type { Entry, StoreRecord } from "../record.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** Whoever loses finds what another has added; so often nobody loses. */
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
    return guard.run("ledger", async () => {
      try {
        await this.#addTo(key, row, lifeMs);
      } catch (error) {
        if (!(error instanceof CodecError)) throw error;
        // What cannot be read makes room for what can.
        await backend.write({ key, ...this.#item(key, row, lifeMs) });
      }
    });
  }

  read(names: readonly string[]): Promise<readonly (CounterRow | undefined)[]> {
    const keys = names.map((name) => this.#names.own(name));
    return this.#store.guard.run("ledger", async () => {
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
    // Whoever counts keeps what was not added and tries again.
    throw new BackendError(
      "STORE_FAILED",
      `the ledger was changed by others ${MOST_ATTEMPTS} times in a row`,
    );
  }

  #item(key: string, row: CounterRow, lifeMs: number): Omit<KeyedRecord, "key"> {
    const record = this.#entry(key, row, lifeMs);
    return { record, lifetimeMs: lifetimeMs(record, record.created) };
  }

  /** Without a seal: clearing the namespace is no reason to forget how it was used. */
  #entry(key: string, row: CounterRow, lifeMs: number): Entry {
    const created = this.now();
    const expires = created + lifeMs;
    return {
      kind: "entry",
      version: this.#store.clock.token(),
      key,
      lineage: [],
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
