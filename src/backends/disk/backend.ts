// The store on disk: LMDB in a folder, shared by all processes of a machine, with no server.
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  KeyedRecord,
  ScanItem,
  ScanOptions,
  SwapResult,
  Usage,
} from "../../core/backend.ts";
import { type Clock, COARSE_LAG_MS, systemClock } from "../../core/clock.ts";
import { CodecError, ConnectionError } from "../../core/errors.ts";
import { payloadLength } from "../../core/payload-part.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { isHashed, recordKey } from "./disk-key.ts";
import type { Environment } from "./environment.ts";
import { type Operation, SwapOperation, TakeOperation, WriteOperation } from "./operation.ts";
import { type DiskOptions, type ResolvedOptions, resolveOptions } from "./options.ts";
import { scanStore, storeUsage } from "./scan.ts";
import { enterEnvironment, type SharedEnvironment } from "./shared-environment.ts";
import { decodeStored, endIn, endOf, versionIn } from "./stored-record.ts";

type Found = StoreRecord | undefined;

/** Used without a cache, it has the deadlines that a cache has by default. */
const ALONE: Pick<BackendHost, "operationTimeoutMs" | "connectTimeoutMs" | "poolSize"> = {
  operationTimeoutMs: 1_000,
  connectTimeoutMs: 5_000,
  poolSize: 1,
};

export class DiskBackend implements Backend {
  readonly name = "disk";
  readonly capabilities: Capabilities = { shared: true, scan: true, ttlResolutionMs: 1, ordered: true };
  readonly #options: ResolvedOptions;
  #host: BackendHost = {
    ...ALONE,
    clock: systemClock,
    report: () => {},
    evicted: () => {},
    met: async () => {},
  };
  #shared: SharedEnvironment | undefined;
  #connecting: Promise<SharedEnvironment> | undefined;
  #isDisconnected = false;

  /** Throws ConfigError. The package lmdb is needed from `connect` on. */
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
    this.#shared = undefined;
    const shared = await connecting?.catch(() => undefined);
    await shared?.leave(this.#host);
  }

  async ping(): Promise<void> {
    await this.read("");
  }

  /** Reads go on while another process keeps the store locked, or the disk is full. */
  answersInPart(): boolean {
    return this.#shared?.committer.isReadOnly === true;
  }

  now(): number {
    return this.#clock.now();
  }

  clockErrorMs(): number {
    return 0;
  }

  aheadMs(): number {
    return 0;
  }

  async read(key: string): Promise<Found> {
    return this.#read((this.#shared ?? (await this.#connected())).environment, key);
  }

  readThen(key: string, _isWatched: boolean, done: (record: Found) => void, failed: Failed): void {
    const shared = this.#shared;
    if (shared === undefined) {
      this.read(key).then(done, failed);
      return;
    }
    let record: Found;
    try {
      record = this.#read(shared.environment, key);
    } catch (error) {
      failed(error);
      return;
    }
    done(record);
  }

  versionNow(key: string): Token | undefined {
    const shared = this.#shared;
    if (shared === undefined) return undefined;
    shared.sweep.used();
    const diskKey = recordKey(key);
    // A hash stands for a key only where the full one is compared.
    if (isHashed(diskKey)) return this.#read(shared.environment, key)?.version;
    return shared.environment.look(diskKey, this.#presentVersion);
  }

  readonly #presentVersion = (bytes: Uint8Array): Token | undefined =>
    this.#hasEnded(endIn(bytes)) ? undefined : versionIn(bytes);

  async readMany(keys: readonly string[]): Promise<readonly Found[]> {
    const { environment, sweep } = this.#shared ?? (await this.#connected());
    sweep.used();
    return environment.snapshot((get) => keys.map((key) => this.#present(get(recordKey(key)), key)));
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
    this.#change(new WriteOperation(item, done, failed));
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
      this.#change(new SwapOperation(key, expected, next, resolve, reject));
    });
  }

  take(key: string): Promise<Found> {
    return new Promise((resolve, reject) => this.#change(new TakeOperation(key, resolve, reject)));
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    await this.#connected();
    yield* scanStore(this.#environment, prefix, this.#clock.now, signal);
  }

  async usage(prefix: string): Promise<Usage> {
    await this.#connected();
    return storeUsage(this.#environment, prefix);
  }

  async fill(): Promise<number> {
    return Math.min(1, this.#environment().usedBytes / this.#options.maxBytes);
  }

  makesRoom(): boolean {
    return true;
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    const { environment, isSynced } = await this.#connected();
    const { directory, maxBytes } = this.#options;
    return {
      directory,
      durability: isSynced ? "disk" : "process",
      maxBytes,
      usedBytes: environment.usedBytes,
      fileBytes: environment.fileBytes,
      readers: environment.readers,
    };
  }

  get #clock(): Clock {
    return this.#host.clock;
  }

  /** Asked at every step of what takes several: it may have been closed in between. */
  readonly #environment = (): Environment => {
    if (this.#shared === undefined) throw disconnected();
    return this.#shared.environment;
  };

  async #connected(): Promise<SharedEnvironment> {
    if (this.#shared !== undefined) return this.#shared;
    if (this.#isDisconnected) throw disconnected();
    this.#connecting ??= enterEnvironment(this.#options, this.#host);
    const connecting = this.#connecting;
    try {
      const shared = await connecting;
      if (this.#connecting !== connecting) throw disconnected();
      this.#shared = shared;
      return shared;
    } catch (error) {
      if (this.#connecting === connecting) this.#connecting = undefined;
      throw error;
    }
  }

  #read(environment: Environment, key: string): Found {
    this.#shared?.sweep.used();
    return this.#present(environment.read(recordKey(key)), key);
  }

  #present(bytes: Buffer | undefined, key: string): Found {
    if (bytes === undefined) return undefined;
    return this.#hasEnded(endOf(bytes)) ? undefined : decodeStored(bytes, key);
  }

  /** Nearly always that is far away, and the coarse time says so. */
  #hasEnded(ends: number): boolean {
    return this.#clock.coarse() + 2 * COARSE_LAG_MS >= ends && this.#clock.now() >= ends;
  }

  #change(operation: Operation): void {
    const shared = this.#shared;
    if (shared === undefined) {
      this.#connected().then(() => this.#change(operation), operation.failed);
      return;
    }
    shared.sweep.used();
    shared.committer.add(operation, this.#host.operationTimeoutMs);
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
