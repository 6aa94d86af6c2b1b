// The library's own records of a namespace in a shared store, updated by compare-and-swap, and the counters among them.
import type { KeyedRecord } from "../backend.ts";
import { type CounterRow, type Counters, sumOf } from "../counters.ts";
import { BackendError, CodecError } from "../errors.ts";
import { lifetimeMs } from "../invalidation/liveness.ts";
import type { Spelling } from "../keys.ts";
import type { OwnRecords } from "../own-records.ts";
import type { Entry, StoreRecord } from "../record.ts";
import type { NamespaceHost } from "./namespace-host.ts";

/** A lost compare-and-swap is repeated on the newer value, at most this often. */
const MOST_ATTEMPTS = 32;

export class SharedRecords implements OwnRecords {
  readonly #store: NamespaceHost;
  readonly #names: Spelling;

  constructor(store: NamespaceHost, names: Spelling) {
    this.#store = store;
    this.#names = names;
  }

  now(): number {
    return this.#store.backend.now();
  }

  update(name: string, change: (present: unknown) => unknown, lifeMs: number): Promise<void> {
    const key = this.#names.own(name);
    const { backend, guard } = this.#store;
    return guard.run("counters", async () => {
      try {
        await this.#swap(key, change, lifeMs);
      } catch (error) {
        if (!(error instanceof CodecError)) throw error;
        // A damaged record is overwritten.
        await backend.write({ key, ...this.#item(key, change(undefined), lifeMs) });
      }
    });
  }

  read(names: readonly string[]): Promise<readonly unknown[]> {
    const keys = names.map((name) => this.#names.own(name));
    return this.#store.guard.run("counters", async () => {
      const records = await this.#store.backend.readMany(keys, false);
      return records.map((record) => this.#valueOf(record));
    });
  }

  async #swap(key: string, change: (present: unknown) => unknown, lifeMs: number): Promise<void> {
    const { backend } = this.#store;
    let present = await backend.read(key);
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const next = this.#item(key, change(this.#valueOf(present)), lifeMs);
      const swapped = await backend.swap(key, present?.version, next);
      if (swapped.won) return;
      present = swapped.current;
    }
    // The caller keeps what was not written and tries again later.
    throw new BackendError(
      "STORE_FAILED",
      `a record of the library changed ${MOST_ATTEMPTS} times while it was being updated`,
    );
  }

  #item(key: string, value: unknown, lifeMs: number): Omit<KeyedRecord, "key"> {
    const record = this.#entry(key, value, lifeMs);
    return { record, lifetimeMs: lifetimeMs(record, record.created) };
  }

  /** Carries no stamps: clear() does not reset these records. */
  #entry(key: string, value: unknown, lifeMs: number): Entry {
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
      payload: this.#store.codec.encode(value),
    };
  }

  #valueOf(record: StoreRecord | undefined): unknown {
    if (record?.kind !== "entry") return undefined;
    try {
      return this.#store.codec.decode(record.payload);
    } catch {
      return undefined;
    }
  }
}

/** Each row is a record. */
export class SharedCounters implements Counters {
  readonly #records: OwnRecords;

  constructor(records: OwnRecords) {
    this.#records = records;
  }

  now(): number {
    return this.#records.now();
  }

  async add(name: string, row: CounterRow, lifeMs: number): Promise<void> {
    await this.#records.update(name, (present) => sumOf(row, rowOf(present) ?? []), lifeMs);
  }

  async read(names: readonly string[]): Promise<readonly (CounterRow | undefined)[]> {
    return (await this.#records.read(names)).map(rowOf);
  }
}

function rowOf(value: unknown): CounterRow | undefined {
  const isRow =
    Array.isArray(value) && value.every((item) => typeof item === "number" && Number.isFinite(item));
  return isRow ? value : undefined;
}
