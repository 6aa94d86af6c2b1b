// The counters of a namespace in a shared store: each row is a record of the library.
import { type CounterRow, type Counters, sumOf } from "../counters.ts";
import type { OwnRecords } from "../own-records.ts";

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
