// The store on Redis or Valkey: one server, the master that sentinels name, or a cluster.

import { parseStoreAddress } from "../../core/address/store-url.ts";
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  KeyedRecord,
  PoolState,
  PushChannel,
  RecordTaker,
  ScanItem,
  ScanOptions,
  SwapResult,
  TakenMany,
  Usage,
} from "../../core/backend.ts";
import { ConfigError, ConnectionError } from "../../core/errors.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { redactUrl } from "../../core/redact.ts";
import { highestUsage } from "../wire/fullest.ts";
import { LazyClient, LazyModule } from "../wire/lazy-client.ts";
import { poolState } from "../wire/pool-state.ts";
import type { Changed, KvClient } from "./client.ts";
import { isKvAddress } from "./kv-address.ts";
import { PushTrust } from "./server/push-trust.ts";

export interface KvOptions {
  /** redis://, rediss://, unix://, redis+cluster://, redis+sentinel:// or a valkey form of them. */
  readonly kvUrl: string;
}

const clientCode = new LazyModule(() => import("./client.ts"));

export class KvBackend implements Backend {
  readonly name = "kv";
  readonly capabilities: Capabilities;
  readonly push: PushChannel;
  readonly #describedAs: { readonly address: string; readonly kind: string };
  readonly #trust: PushTrust;
  readonly #listeners = new Set<Changed>();
  readonly #client: LazyClient<typeof import("./client.ts"), KvClient>;
  #host: BackendHost | undefined;

  /** Throws ConfigError for an address that is not one of Redis or Valkey. */
  constructor({ kvUrl }: KvOptions) {
    const address = parseStoreAddress(kvUrl);
    if (!isKvAddress(address)) {
      throw new ConfigError(
        "CONFIG_INVALID",
        `kvUrl must be an address of Redis or Valkey, got ${redactUrl(kvUrl)}`,
      );
    }
    // On one server all stamps share a connection; in a cluster each may be on another server.
    const ordered = address.kind !== "cluster";
    this.capabilities = { shared: true, scan: true, ttlResolutionMs: 1, replicated: true, ordered };
    this.#describedAs = { address: redactUrl(kvUrl), kind: address.kind };
    this.#client = new LazyClient(
      clientCode,
      (code) => new code.KvClient(address, this.#opened, this.#changed),
    );
    const trust = new PushTrust(
      () => this.#client.opened?.trustedUntil() ?? 0,
      () => this.#host?.clock.now() ?? 0,
    );
    this.#trust = trust;
    this.push = {
      epoch: (key) => this.#client.opened?.epoch(key, trust.holds()) ?? 0,
      isTrusted: (now) => (now === undefined ? trust.holds() : trust.holdsAt(now)),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }

  open(host: BackendHost): void {
    this.#host = host;
    this.#client.prepare();
  }

  async connect(): Promise<void> {
    await (await this.#client.whenReady()).connect();
  }

  async disconnect(): Promise<void> {
    this.#client.close();
  }

  ping(): Promise<void> {
    return this.#client.use((client) => client.ping());
  }

  answersInPart(): boolean {
    return this.#client.opened?.answersInPart() ?? false;
  }

  now(): number {
    return this.#client.opened?.now() ?? this.#opened.clock.now();
  }

  clockErrorMs(): number {
    return this.#client.opened?.clockErrorMs() ?? 0;
  }

  aheadMs(): number {
    return this.#client.opened?.aheadMs() ?? 1;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#client.use(({ records }) => records.read(key));
  }

  readThen(key: string, isWatched: boolean, taker: RecordTaker): void {
    const client = this.#client.ready;
    if (client !== undefined) client.records.readThen(key, isWatched, taker);
    else
      this.#client.later(
        ({ records }) => records.readThen(key, isWatched, taker),
        (error) => taker.fail(error),
      );
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    const client = this.#client.ready;
    if (client !== undefined) client.records.writeThen(item, done, failed);
    else this.#client.later(({ records }) => records.writeThen(item, done, failed), failed);
  }

  readMany(keys: readonly string[], isWatched = true): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#client.use(({ records }) => records.readMany(keys, isWatched));
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    const client = this.#client.ready;
    if (client !== undefined) client.records.readManyThen(keys, isWatched, done, failed);
    else this.#client.later(({ records }) => records.readManyThen(keys, isWatched, done, failed), failed);
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#client.use(({ records }) => records.write(item));
  }

  writeMany(items: readonly KeyedRecord[]): Promise<void> {
    return this.#client.use(({ records }) => records.writeMany(items));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#client.use(({ records }) => records.swap(key, expected, next));
  }

  take(key: string): Promise<StoreRecord | undefined> {
    return this.#client.use(({ records }) => records.take(key));
  }

  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#client.use(({ records }) => records.takeMany(keys));
  }

  removeMany(keys: readonly string[]): Promise<void> {
    return this.#client.use(({ records }) => records.removeMany(keys));
  }

  touch(keys: readonly string[]): Promise<void> {
    return this.#client.use(({ records }) => records.touch(keys));
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    const client = await this.#client.whenReady();
    yield* client.scan(prefix, signal);
  }

  usage(prefix: string): Promise<Usage> {
    return this.#client.use((client) => client.usage(prefix));
  }

  fill(): Promise<number | undefined> {
    return this.#client.opened?.fill() ?? highestUsage([]);
  }

  makesRoom(): boolean {
    return this.#client.opened?.makesRoom() ?? true;
  }

  pool(): PoolState {
    return this.#client.opened?.pool() ?? poolState([]);
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    return { ...this.#describedAs, ...(await this.#client.use((client) => client.describe())) };
  }

  get #opened(): BackendHost {
    if (this.#host === undefined)
      throw new ConnectionError("the store was not opened", { code: "DISCONNECTED" });
    return this.#host;
  }

  readonly #changed: Changed = (key) => {
    if (key === undefined) this.#trust.revoke();
    for (const listener of this.#listeners) listener(key);
  };
}
