// The backend contract at its plainest: frames in a Map that any number of clients share, with expiry by the clock.
import type {
  Backend,
  Capabilities,
  KeyedRecord,
  PushChannel,
  ScanItem,
  ScanOptions,
  SwapResult,
  Usage,
} from "../../src/core/backend.ts";
import type { Clock } from "../../src/core/clock.ts";
import { ConnectionError, UnsupportedError } from "../../src/core/errors.ts";
import { decodeRecord, encodeRecord } from "../../src/core/frame/frame.ts";
import type { StoreRecord, Token } from "../../src/core/record.ts";
import { ReferencePush } from "./reference-push.ts";

export interface ReferenceOptions {
  /** When changes are pushed: never, before the change is acknowledged, or this many milliseconds later. Default: never. */
  readonly push?: "none" | "at once" | number;
  /** Default: true. */
  readonly scan?: boolean;
  /** Default: 1. */
  readonly ttlResolutionMs?: number;
}

interface Kept {
  readonly frame: Uint8Array;
  readonly expires: number;
}

export type Snapshot = ReadonlyMap<string, Kept>;

const SCAN_BATCH = 100;

/** The data that the clients share, and what can happen to it without their knowledge. */
export class ReferenceStore {
  readonly clock: Clock;
  readonly options: ReferenceOptions;
  readonly channels = new Set<ReferencePush>();
  #kept = new Map<string, Kept>();

  constructor(clock: Clock, options: ReferenceOptions = {}) {
    this.clock = clock;
    this.options = options;
  }

  client(): ReferenceBackend {
    return new ReferenceBackend(this);
  }

  get(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    return kept !== undefined && this.clock.now() < kept.expires ? kept : undefined;
  }

  put(key: string, kept: Kept): void {
    this.#kept.set(key, kept);
    this.#tell(key);
  }

  /** As an eviction does. */
  remove(key: string): void {
    if (this.#kept.delete(key)) this.#tell(key);
  }

  keys(): string[] {
    return [...this.#kept.keys()].filter((key) => this.get(key) !== undefined);
  }

  flushAll(): void {
    this.#kept.clear();
    for (const channel of this.channels) channel.changed(undefined);
  }

  snapshot(): Snapshot {
    return new Map(this.#kept);
  }

  /** The server dies and comes back with what it had saved: every connection is a new one. */
  restart(snapshot: Snapshot): void {
    this.#kept = new Map(snapshot);
    for (const channel of this.channels) channel.reset();
  }

  #tell(key: string): void {
    for (const channel of this.channels) channel.changed(key);
  }
}

/** One process's client. It connects with its first operation, and not again once it was disconnected. */
export class ReferenceBackend implements Backend {
  readonly name: string = "reference";
  readonly capabilities: Capabilities;
  declare readonly push?: PushChannel;
  protected readonly store: ReferenceStore;
  readonly #channel: ReferencePush | undefined;
  #state: "new" | "connected" | "disconnected" = "new";

  constructor(store: ReferenceStore) {
    const { push = "none", scan = true, ttlResolutionMs = 1 } = store.options;
    this.store = store;
    this.capabilities = { shared: true, scan, ttlResolutionMs };
    if (push === "none") return;
    this.#channel = new ReferencePush(store.clock, push === "at once" ? 0 : push);
    this.push = this.#channel;
  }

  async connect(): Promise<void> {
    if (this.#state === "connected") return;
    this.#state = "connected";
    if (this.#channel === undefined) return;
    this.store.channels.add(this.#channel);
    this.#channel.reset();
  }

  async disconnect(): Promise<void> {
    this.#state = "disconnected";
    if (this.#channel === undefined) return;
    this.store.channels.delete(this.#channel);
    this.#channel.close();
  }

  async ping(): Promise<void> {
    this.#begin();
  }

  now(): number {
    return this.store.clock.now();
  }

  clockErrorMs(): number {
    return 0;
  }

  async read(key: string): Promise<StoreRecord | undefined> {
    this.#begin();
    this.#channel?.track(key);
    return this.present(key);
  }

  async readMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return Promise.all(keys.map((key) => this.read(key)));
  }

  async write({ key, record, lifetimeMs }: KeyedRecord): Promise<void> {
    this.#begin();
    const step = this.capabilities.ttlResolutionMs;
    const wholeMs = Number.isFinite(lifetimeMs) ? Math.ceil(lifetimeMs / step) * step : lifetimeMs;
    this.store.put(key, { frame: encodeRecord(record), expires: this.now() + wholeMs });
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    this.#begin();
    const current = this.present(key);
    if (current?.version !== expected) return { won: false, current };
    if (next === undefined) this.store.remove(key);
    else await this.write({ key, ...next });
    return { won: true };
  }

  async take(key: string): Promise<StoreRecord | undefined> {
    this.#begin();
    const taken = this.present(key);
    this.store.remove(key);
    return taken;
  }

  async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    this.#requireScan();
    const keys = this.store.keys().filter((key) => key.startsWith(prefix));
    for (let at = 0; at < keys.length && !signal?.aborted; at += SCAN_BATCH) {
      this.#begin();
      yield keys.slice(at, at + SCAN_BATCH).flatMap((key) => {
        const record = this.present(key);
        return record === undefined ? [] : [{ key, record, bytes: this.#bytesOf(key) }];
      });
    }
  }

  async usage(prefix: string): Promise<Usage> {
    this.#requireScan();
    const keys = this.store.keys().filter((key) => key.startsWith(prefix));
    const bytes = keys.reduce((sum, key) => sum + this.#bytesOf(key), 0);
    return { keys: keys.length, bytes, approximate: false };
  }

  /** The record under a key, decoded from its bytes each time. */
  protected present(key: string): StoreRecord | undefined {
    const kept = this.store.get(key);
    return kept && decodeRecord(Uint8Array.from(kept.frame), key);
  }

  #bytesOf(key: string): number {
    return key.length + (this.store.get(key)?.frame.length ?? 0);
  }

  #begin(): void {
    if (this.#state === "disconnected") throw new ConnectionError("disconnected", { code: "DISCONNECTED" });
    if (this.#state === "new") void this.connect();
  }

  #requireScan(): void {
    this.#begin();
    if (!this.capabilities.scan)
      throw new UnsupportedError("the reference store is configured not to list keys");
  }
}
