// MemoryBackend: the in-process store, bounded by entries and bytes.

import type {
  Backend,
  BackendHost,
  Capabilities,
  KeyedRecord,
  ScanItem,
  ScanOptions,
  SwapResult,
  Usage,
} from "../../core/backend.ts";
import { checkBackendOptions, MOST_ENTRIES } from "../../core/backend-options.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Copier } from "../../core/codec.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import type { Handing } from "../../core/frozen.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { RecordTable } from "./records.ts";
import { MemoryStore } from "./store.ts";

export interface MemoryBackendOptions {
  /** Most entries over all namespaces, 1 to 8,388,608; the least useful are evicted first. Default: 100,000. */
  readonly maxEntries?: number;
  /**
   * Approximate bound of the bytes of keys and values. Default: a quarter of the heap limit, at most 256 MB. `Infinity`: none,
   * so values need not be measured when they are stored.
   */
  readonly maxBytes?: number;
  /**
   * `copy`: every caller gets its own copy. `shared`: the stored object itself, which is faster; do not change it.
   * `frozen`: one deeply frozen copy for all callers; what is not plain data is copied. Default: copy.
   */
  readonly values?: "copy" | "shared" | "frozen";
}

const DEFAULT_MAX_ENTRIES = 100_000;

const MOST_DEFAULT_BYTES = 256 * 1024 * 1024;

/** Loaded when it is needed: node:v8 takes milliseconds to load. */
function defaultMaxBytes(): number {
  const { heap_size_limit: heap } = process.getBuiltinModule("node:v8").getHeapStatistics();
  return Math.min(MOST_DEFAULT_BYTES, Math.floor(heap / 4));
}

/**
 * A bounded store in the process, also opened by `memory://`.
 *
 * @example
 * ```ts
 * const backend = new MemoryBackend({ maxEntries: 50_000, values: "shared" });
 * const cache = new XCache({ backend });
 * ```
 */
export class MemoryBackend implements Backend {
  readonly name = "memory";
  readonly capabilities: Capabilities = { shared: false, scan: true, ttlResolutionMs: 1 };
  readonly maxEntries: number;
  readonly values: Handing;
  #maxBytes: number | undefined;
  #store: MemoryStore | undefined;
  #records: RecordTable | undefined;
  #clock: Clock = systemClock;
  #evicted: (key: string) => void = () => {};

  constructor(options: MemoryBackendOptions = {}) {
    checkOptions(options);
    this.maxEntries = options.maxEntries ?? DEFAULT_MAX_ENTRIES;
    this.#maxBytes = options.maxBytes;
    this.values = options.values ?? "copy";
  }

  get maxBytes(): number {
    this.#maxBytes ??= defaultMaxBytes();
    return this.#maxBytes;
  }

  /** The synchronous in-process store, shared by every cache on this backend. */
  store(clock: Clock, codec: Copier): MemoryStore {
    // The first read does not need the bound.
    const maxBytes = this.#maxBytes ?? ((): number => this.maxBytes);
    const { maxEntries, values } = this;
    this.#store ??= new MemoryStore(this, { maxEntries, maxBytes, values }, clock, codec);
    return this.#store;
  }

  open(host: BackendHost): void {
    this.#clock = host.clock;
    this.#evicted = host.evicted;
  }

  async connect(): Promise<void> {}
  async disconnect(): Promise<void> {}
  async ping(): Promise<void> {}

  now(): number {
    return this.#clock.now();
  }

  clockErrorMs(): number {
    return 0;
  }

  async read(key: string): Promise<StoreRecord | undefined> {
    return this.#table.read(key);
  }

  async readMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return keys.map((key) => this.#table.read(key));
  }

  async write(item: KeyedRecord): Promise<void> {
    this.#table.write(item);
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    for (const item of items) this.#table.write(item);
  }

  async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#table.swap(key, expected, next);
  }

  async take(key: string): Promise<StoreRecord | undefined> {
    return this.#table.take(key);
  }

  async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return keys.map((key) => this.#table.take(key));
  }

  scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
    return this.#table.scan(prefix, options);
  }

  makesRoom(): boolean {
    return true;
  }

  async usage(prefix: string): Promise<Usage> {
    return this.#table.usage(prefix);
  }

  get #table(): RecordTable {
    this.#records ??= new RecordTable({
      maxEntries: this.maxEntries,
      maxBytes: this.maxBytes,
      clock: this.#clock,
      onEvict: (_page, key) => this.#evicted(key),
    });
    return this.#records;
  }
}

const HANDINGS: readonly unknown[] = ["copy", "shared", "frozen"] satisfies Handing[];
const OPTION_NAMES = ["maxEntries", "maxBytes", "values"];

function checkOptions(options: unknown): asserts options is MemoryBackendOptions {
  checkBackendOptions("MemoryBackend", options, OPTION_NAMES);
  const { maxEntries, maxBytes, values } = options;
  const whole = (value: unknown, most: number): boolean =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most;
  if (maxEntries !== undefined && !whole(maxEntries, MOST_ENTRIES)) {
    throw new ConfigError(
      "CONFIG_INVALID",
      `maxEntries (max_entries in a store address) must be a whole number from 1 to ${MOST_ENTRIES}, got ${describeArrival(maxEntries)}`,
    );
  }
  if (
    maxBytes !== undefined &&
    maxBytes !== Number.POSITIVE_INFINITY &&
    !whole(maxBytes, Number.MAX_SAFE_INTEGER)
  ) {
    throw new ConfigError(
      "CONFIG_INVALID",
      `maxBytes must be a whole number of bytes of at least 1, got ${describeArrival(maxBytes)}`,
    );
  }
  if (values !== undefined && !HANDINGS.includes(values)) {
    throw new ConfigError(
      "CONFIG_INVALID",
      `values must be "copy", "shared" or "frozen", got ${describeArrival(values)}`,
    );
  }
}
