// The record-level backend contract on the bounded table, so that a memory store can replace a shared one in tests.
import type { KeyedRecord, ScanItem, ScanOptions, SwapResult, Usage } from "../../core/backend.ts";
import type { Clock } from "../../core/clock.ts";
import { nextTurn } from "../../core/event-loop.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { Page } from "./layout/page.ts";
import { Table, type TableOptions } from "./table.ts";

const SCAN_BATCH = 1_000;
/** Approximate bytes of a record besides its payload. */
const RECORD_BYTES = 200;

/** Records expire by lifetime only; the core decides whether they are live, so they have no tag sets. */
export class RecordTable {
  readonly #table: Table<never>;
  readonly #page: Page;
  readonly #clock: Clock;

  constructor(options: TableOptions) {
    this.#table = new Table(options);
    this.#page = this.#table.openPage();
    this.#clock = options.clock;
  }

  read(key: string): StoreRecord | undefined {
    return this.#page.peek(key) as StoreRecord | undefined;
  }

  write({ key, record, lifetimeMs }: KeyedRecord): void {
    const expires = this.#clock.now() + lifetimeMs;
    this.#table.put(this.#page, key, detached(record), undefined, expires, 0, sizeOf(key, record));
  }

  swap(key: string, expected: Token | undefined, next: Omit<KeyedRecord, "key"> | undefined): SwapResult {
    const current = this.read(key);
    if (current?.version !== expected) return { won: false, current };
    if (next === undefined) this.#table.remove(this.#page, key);
    else this.write({ key, ...next });
    return { won: true };
  }

  take(key: string): StoreRecord | undefined {
    const current = this.read(key);
    this.#table.remove(this.#page, key);
    return current;
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    for await (const keys of this.#batches(prefix, signal)) {
      const batch: ScanItem[] = [];
      for (const key of keys) {
        const record = this.read(key);
        if (record !== undefined) batch.push({ key, record, bytes: sizeOf(key, record) });
      }
      yield batch;
    }
  }

  async usage(prefix: string): Promise<Usage> {
    let keys = 0;
    let bytes = 0;
    for await (const batch of this.scan(prefix)) {
      keys += batch.length;
      for (const item of batch) bytes += item.bytes;
    }
    return { keys, bytes, approximate: false };
  }

  /** The keys with this prefix. Skipped keys count towards a step too: they take time as well. */
  async *#batches(prefix: string, signal: AbortSignal | undefined): AsyncIterable<readonly string[]> {
    let batch: string[] = [];
    let visited = 0;
    for (const key of this.#page.keys()) {
      if (signal?.aborted) return;
      if (key.startsWith(prefix)) batch.push(key);
      if (++visited % SCAN_BATCH !== 0) continue;
      if (batch.length > 0) yield batch;
      batch = [];
      await nextTurn();
    }
    if (!signal?.aborted) yield batch;
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
