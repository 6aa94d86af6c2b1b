// Reads the records of an open store and passes changes to the committer of the process.
import type {
  BackendHost,
  Failed,
  KeyedRecord,
  RecordHead,
  ScanItem,
  ScanPosition,
  SwapResult,
  Usage,
} from "../../core/backend.ts";
import { COARSE_LAG_MS } from "../../core/clock.ts";
import { INCOMPLETE } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { Environment } from "./environment.ts";
import { isHashed, recordKey } from "./layout/disk-key.ts";
import {
  decodeStored,
  decodeStoredHead,
  expiryIn,
  expiryOf,
  HEADER_BYTES,
  HEADER_GROWTH,
  versionIn,
} from "./layout/stored-record.ts";
import { type Operation, SwapOperation, TakeOperation, WriteOperation } from "./operation.ts";
import type { ResolvedOptions } from "./options.ts";
import { scanStore, storeUsage } from "./scan.ts";
import { enterEnvironment, type SharedEnvironment } from "./shared-environment.ts";

type Found = StoreRecord | undefined;

/** Throws ConnectionError or MissingPeerError. */
export async function enterStore(options: ResolvedOptions, host: BackendHost): Promise<Records> {
  return new Records(await enterEnvironment(options, host), options, host);
}

export class Records {
  readonly #shared: SharedEnvironment;
  readonly #options: ResolvedOptions;
  readonly #host: BackendHost;

  constructor(shared: SharedEnvironment, options: ResolvedOptions, host: BackendHost) {
    this.#shared = shared;
    this.#options = options;
    this.#host = host;
  }

  get environment(): Environment {
    return this.#shared.environment;
  }

  get isReadOnly(): boolean {
    return this.#shared.committer.isReadOnly;
  }

  /** Whether the folder was removed or replaced, so that the store must be opened again. */
  get isGone(): boolean {
    return this.#shared.isGone;
  }

  /** The share of maxBytes in use. */
  get fill(): number {
    return Math.min(1, this.environment.usedBytes / this.#options.maxBytes);
  }

  leave(): Promise<void> {
    return this.#shared.leave(this.#host);
  }

  /** As `leave`, and closes it for all other users too. */
  async giveUp(): Promise<void> {
    await this.#shared.retire();
    await this.leave();
  }

  read(key: string): Found {
    const { environment, sweep } = this.#shared;
    sweep.used();
    return this.#present(environment.read(recordKey(key)), key);
  }

  readHead(key: string, most: number): RecordHead | undefined {
    const { environment, sweep } = this.#shared;
    sweep.used();
    const diskKey = recordKey(key);
    for (let wanted = HEADER_BYTES + most; ; wanted *= HEADER_GROWTH) {
      const found = environment.head(diskKey, wanted);
      if (found === undefined || this.#isExpired(expiryOf(found.value))) return undefined;
      const head = decodeStoredHead(found.value, key, found.size);
      if (head !== INCOMPLETE) return head;
    }
  }

  versionNow(key: string): Token | undefined {
    const { environment, sweep } = this.#shared;
    sweep.used();
    const diskKey = recordKey(key);
    // Two keys may share a hash: the full key must be compared.
    if (isHashed(diskKey)) return this.read(key)?.version;
    return environment.inspect(diskKey, this.#presentVersion);
  }

  readonly #presentVersion = (bytes: Uint8Array): Token | undefined =>
    this.#isExpired(expiryIn(bytes)) ? undefined : versionIn(bytes);

  readMany(keys: readonly string[]): readonly Found[] {
    const { environment, sweep } = this.#shared;
    sweep.used();
    return environment.snapshot((get) => keys.map((key) => this.#present(get(recordKey(key)), key)));
  }

  write(item: KeyedRecord, done: () => void, failed: Failed): void {
    this.#change(new WriteOperation(item, done, failed));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
    done: (result: SwapResult) => void,
    failed: Failed,
  ): void {
    this.#change(new SwapOperation(key, expected, next, done, failed));
  }

  take(key: string, done: (record: Found) => void, failed: Failed): void {
    this.#change(new TakeOperation(key, done, failed));
  }

  /** `present` is called at every step. */
  scan(
    prefix: string,
    present: () => Records,
    signal: AbortSignal | undefined,
    position: ScanPosition,
  ): AsyncIterable<readonly ScanItem[]> {
    return scanStore(() => present().environment, prefix, this.#host.clock.now, signal, position);
  }

  usage(prefix: string, present: () => Records): Promise<Usage> {
    return storeUsage(() => present().environment, prefix);
  }

  describe(): Readonly<Record<string, string | number | boolean>> {
    const { environment, isSynced } = this.#shared;
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

  #change(operation: Operation): void {
    this.#shared.sweep.used();
    this.#shared.committer.add(operation, this.#host.operationTimeoutMs);
  }

  #present(bytes: Buffer | undefined, key: string): Found {
    if (bytes === undefined) return undefined;
    return this.#isExpired(expiryOf(bytes)) ? undefined : decodeStored(bytes, key);
  }

  /** The coarse clock is enough unless the expiry is near. */
  #isExpired(expiresAt: number): boolean {
    const { clock } = this.#host;
    return clock.coarse() + 2 * COARSE_LAG_MS >= expiresAt && clock.now() >= expiresAt;
  }
}
