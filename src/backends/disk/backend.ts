// The disk backend: LMDB in a folder, shared by all processes of a machine without a server.
import { outsideCallers } from "../../core/async-context.ts";
import {
  type Backend,
  type BackendHost,
  type Capabilities,
  deliverTo,
  type Failed,
  type KeyedRecord,
  type RecordHead,
  type RecordTaker,
  type ScanItem,
  type ScanOptions,
  type SwapResult,
  type Usage,
} from "../../core/backend.ts";
import { systemClock } from "../../core/clock.ts";
import { payloadLength } from "../../core/codec.ts";
import { CodecError, ConnectionError } from "../../core/errors.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { type DiskOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import type { Records } from "./records.ts";

type Found = StoreRecord | undefined;

/** Without a cache it uses the default deadlines of one. */
const ALONE: Pick<BackendHost, "operationTimeoutMs" | "connectTimeoutMs" | "poolSize"> = {
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 5_000,
  poolSize: 1,
};

/**
 * An LMDB folder that the processes of one machine share, also opened by `file:///`. Needs the package `lmdb`.
 *
 * @example
 * ```ts
 * const backend = new DiskBackend({ directory: "/var/cache/app", maxBytes: 256 * 1024 * 1024 });
 * const cache = new XCache({ backend });
 * ```
 */
export class DiskBackend implements Backend {
  readonly name = "disk";
  readonly capabilities: Capabilities = {
    shared: true,
    scan: true,
    ttlResolutionMs: 1,
    ordered: true,
    takesPayloadSlices: true,
  };
  readonly #options: ResolvedOptions;
  #host: BackendHost = {
    ...ALONE,
    clock: systemClock,
    report: () => {},
    evicted: () => {},
    onServer: async () => {},
  };
  #records: Records | undefined;
  #connecting: Promise<Records> | undefined;
  #isDisconnected = false;

  /** Throws ConfigError. The package lmdb is loaded by `connect`. */
  constructor(options: DiskOptions) {
    this.#options = resolveOptions(options);
  }

  open(host: BackendHost): void {
    this.#host = host;
  }

  async connect(): Promise<void> {
    this.#isDisconnected = false;
    await this.#connected();
  }

  async disconnect(): Promise<void> {
    this.#isDisconnected = true;
    const connecting = this.#connecting;
    this.#connecting = undefined;
    this.#records = undefined;
    const records = await connecting?.catch(() => undefined);
    await records?.leave();
  }

  async ping(): Promise<void> {
    await this.read("");
  }

  /** Reads still work while another process holds the write lock or the disk is full. */
  answersInPart(): boolean {
    return this.#records?.isReadOnly === true;
  }

  now(): number {
    return this.#host.clock.now();
  }

  clockErrorMs(): number {
    return 0;
  }

  aheadMs(): number {
    return 0;
  }

  async read(key: string): Promise<Found> {
    return (this.#usable ?? (await this.#connected())).read(key);
  }

  async readHead(key: string, most: number): Promise<RecordHead | undefined> {
    return (this.#usable ?? (await this.#connected())).readHead(key, most);
  }

  readThen(key: string, _isWatched: boolean, taker: RecordTaker): void {
    const records = this.#usable;
    if (records === undefined) {
      deliverTo(taker, this.read(key));
      return;
    }
    let record: Found;
    try {
      record = records.read(key);
    } catch (error) {
      taker.fail(error);
      return;
    }
    taker.take(record);
  }

  versionNow(key: string): Token | undefined {
    return this.#usable?.versionNow(key);
  }

  async readMany(keys: readonly string[]): Promise<readonly Found[]> {
    return (this.#usable ?? (await this.#connected())).readMany(keys);
  }

  write(item: KeyedRecord): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(item, resolve, reject));
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    try {
      this.#requireFit(item.record);
    } catch (error) {
      failed(error);
      return;
    }
    this.#change((records) => records.write(item, done, failed), failed);
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return new Promise((resolve, reject) => {
      if (next !== undefined) this.#requireFit(next.record);
      this.#change((records) => records.swap(key, expected, next, resolve, reject), reject);
    });
  }

  take(key: string): Promise<Found> {
    return new Promise((resolve, reject) => {
      this.#change((records) => records.take(key, resolve, reject), reject);
    });
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async *scan(prefix: string, { signal, ...position }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    yield* (await this.#connected()).scan(prefix, this.#present, signal, position);
  }

  async usage(prefix: string): Promise<Usage> {
    return (await this.#connected()).usage(prefix, this.#present);
  }

  async memoryUsage(): Promise<number> {
    return this.#present().fill;
  }

  makesRoom(): boolean {
    return true;
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    return (await this.#connected()).describe();
  }

  /** Called at every step of a scan: the store may have been closed in between. */
  readonly #present = (): Records => {
    const records = this.#usable;
    if (records === undefined) throw disconnected();
    return records;
  };

  /** The open store. If its folder was removed or replaced, starts opening what is there now. */
  get #usable(): Records | undefined {
    const records = this.#records;
    if (records === undefined || !records.isGone) return records;
    this.#records = undefined;
    this.#connecting = records.giveUp().then(() => this.#enter());
    // The next call awaits the promise and gets the error.
    this.#connecting.catch(() => {});
    return undefined;
  }

  async #connected(): Promise<Records> {
    const usable = this.#usable;
    if (usable !== undefined) return usable;
    if (this.#isDisconnected) throw disconnected();
    this.#connecting ??= this.#enter();
    const connecting = this.#connecting;
    try {
      const records = await connecting;
      if (this.#connecting !== connecting) throw disconnected();
      this.#records = records;
      return records;
    } catch (error) {
      if (this.#connecting === connecting) this.#connecting = undefined;
      throw error;
    }
  }

  /** Imported on demand, so that LMDB code is loaded only where it is used. */
  #enter(): Promise<Records> {
    return outsideCallers(async () => {
      const { enterStore } = await import("./records.ts");
      return enterStore(this.#options, this.#host);
    });
  }

  #change(change: (records: Records) => void, failed: Failed): void {
    const records = this.#usable;
    if (records === undefined) this.#connected().then(change).catch(failed);
    else change(records);
  }

  #requireFit(record: StoreRecord): void {
    if (record.kind !== "entry") return;
    const most = this.#options.maxBytes / 2;
    const bytes = payloadLength(record.payload);
    if (bytes <= most) return;
    throw new CodecError(
      "VALUE_TOO_LARGE",
      `a value must be at most ${most} bytes, half of the store's max_bytes, got ${bytes} bytes`,
      { hint: "Store less under one key, turn compression on, or raise max_bytes." },
    );
  }
}

function disconnected(): ConnectionError {
  return new ConnectionError("the store on disk is disconnected", { code: "DISCONNECTED" });
}
