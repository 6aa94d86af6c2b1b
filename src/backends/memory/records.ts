// The record-level contract on the bounded slots: lets a memory store stand in for a shared one, in tests above all.
import type { KeyedRecord, ScanItem, ScanOptions, SwapResult, Usage } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { MemorySeal } from "./seal.ts";
import type { SlotIndex, Slots } from "./slots.ts";

/** Records lapse by their lifetime alone; whether they are live is the core's business. */
const ALWAYS_LIVE = new MemorySeal([], []);
const SCAN_BATCH = 1_000;
/** What a record takes besides its payload, about. */
const RECORD_BYTES = 200;

export class RecordTable {
  readonly #slots: Slots<MemorySeal>;
  readonly #index: SlotIndex;
  readonly #clock: Clock;

  constructor(slots: Slots<MemorySeal>, clock: Clock) {
    this.#slots = slots;
    this.#index = slots.openIndex();
    this.#clock = clock;
  }

  get index(): SlotIndex {
    return this.#index;
  }

  read(key: string): StoreRecord | undefined {
    const slot = this.#index.get(key);
    if (slot === undefined) return undefined;
    if (this.#clock.now() >= (this.#slots.expires[slot] as number)) return undefined;
    this.#slots.touch(slot);
    return this.#slots.values[slot] as StoreRecord;
  }

  write({ key, record, lifetimeMs }: KeyedRecord): void {
    const now = this.#clock.now();
    const expires = now + lifetimeMs;
    this.#slots.put(
      this.#index,
      key,
      detached(record),
      ALWAYS_LIVE,
      now,
      expires,
      expires,
      sizeOf(key, record),
    );
  }

  swap(key: string, expected: Token | undefined, next: Omit<KeyedRecord, "key"> | undefined): SwapResult {
    const current = this.read(key);
    if (current?.version !== expected) return { won: false, current };
    if (next === undefined) this.#slots.remove(this.#index, key);
    else this.write({ key, ...next });
    return { won: true };
  }

  take(key: string): StoreRecord | undefined {
    const current = this.read(key);
    this.#slots.remove(this.#index, key);
    return current;
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    let batch: ScanItem[] = [];
    for (const key of this.#index.keys()) {
      if (signal?.aborted) return;
      if (!key.startsWith(prefix)) continue;
      const record = this.read(key);
      if (record !== undefined) batch.push({ key, record, bytes: sizeOf(key, record) });
      if (batch.length < SCAN_BATCH) continue;
      yield batch;
      batch = [];
    }
    yield batch;
  }

  usage(prefix: string): Usage {
    let keys = 0;
    let bytes = 0;
    for (const key of this.#index.keys()) {
      if (!key.startsWith(prefix)) continue;
      const record = this.read(key);
      if (record === undefined) continue;
      keys++;
      bytes += sizeOf(key, record);
    }
    return { keys, bytes, approximate: false };
  }
}

function sizeOf(key: string, record: StoreRecord): number {
  const payload = record.kind === "entry" ? record.payload.bytes.length : 0;
  return key.length * 2 + payload + RECORD_BYTES;
}

/** A payload may be a view into a buffer that its owner reuses. */
function detached(record: StoreRecord): StoreRecord {
  if (record.kind === "stamp") return record;
  if (record.kind === "lease") {
    return record.behind === undefined
      ? record
      : { ...record, behind: detached(record.behind) as typeof record.behind };
  }
  return {
    ...record,
    payload: { format: record.payload.format, bytes: Uint8Array.from(record.payload.bytes) },
  };
}
