// Decorates a backend: pending invalidations of a key are delivered before the key is used.
import {
  type Backend,
  BRIDGED_STEP_MS,
  type Capabilities,
  deliverTo,
  type Failed,
  type KeyedRecord,
  type PoolState,
  type PushChannel,
  type RecordHead,
  type RecordTaker,
  type ScanItem,
  type ScanOptions,
  type SwapResult,
  type TakenMany,
  type Usage,
} from "../backend.ts";
import { type Clock, NEAR_EXPIRY_MS } from "../clock.ts";
import { OperationTimeoutError } from "../errors.ts";
import { wholeHead } from "../frame/frame.ts";
import { type StoreRecord, stampId, type Token } from "../record.ts";
import type { Outcome } from "../resilience/guarded-call.ts";
import type { Outbox } from "./outbox.ts";
import { OwnExpiries } from "./own-expiries.ts";

/** Smaller differences come from reading two clocks one after the other. */
const BACKLASH_MS = 0.5;

/** From here on, one more round trip costs less than to transfer a payload in vain. */
export const LARGE_BYTES = 64 * 1024;

type Found = StoreRecord | undefined;
type Ending = Pick<Outcome<void>, "isOver">;

export class OutboxBackend implements Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly push?: PushChannel;
  readonly pool?: () => PoolState;
  readonly describe?: NonNullable<Backend["describe"]>;
  readonly memoryUsage?: NonNullable<Backend["memoryUsage"]>;
  readonly makesRoom?: NonNullable<Backend["makesRoom"]>;
  readonly restrictions?: NonNullable<Backend["restrictions"]>;
  /** Also undefined while invalidations are pending or when the store fails: callers then do a full read. */
  readonly versionNow?: NonNullable<Backend["versionNow"]>;
  readonly ownExpiries: OwnExpiries;
  readonly #backend: Backend;
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #operationTimeoutMs: number;
  /** The latest `aheadMs()` of the backend. */
  #ahead = Number.NEGATIVE_INFINITY;
  /** The latest time of the store that entries were judged by, until the store reaches it again; 0: it has. */
  #bridge = 0;

  constructor(backend: Backend, outbox: Outbox, clock: Clock, operationTimeoutMs: number) {
    this.name = backend.name;
    this.capabilities = backend.capabilities;
    if (backend.push !== undefined) this.push = backend.push;
    if (backend.pool !== undefined) this.pool = backend.pool.bind(backend);
    if (backend.describe !== undefined) this.describe = backend.describe.bind(backend);
    if (backend.memoryUsage !== undefined) this.memoryUsage = backend.memoryUsage.bind(backend);
    if (backend.makesRoom !== undefined) this.makesRoom = backend.makesRoom.bind(backend);
    if (backend.restrictions !== undefined) this.restrictions = backend.restrictions.bind(backend);
    if (backend.versionNow !== undefined) this.versionNow = (key) => this.#versionNow(key);
    this.#backend = backend;
    this.ownExpiries = new OwnExpiries(clock);
    this.#outbox = outbox;
    this.#clock = clock;
    this.#operationTimeoutMs = operationTimeoutMs;
  }

  /** Whether stamp changes need not wait for each other: the store applies them in the order they are sent. */
  get isOrdered(): boolean {
    return this.capabilities.ordered === true && this.#outbox.size === 0;
  }

  connect(): Promise<void> {
    return this.#backend.connect();
  }

  disconnect(): Promise<void> {
    return this.#backend.disconnect();
  }

  ping(): Promise<void> {
    return this.#backend.ping();
  }

  answersInPart(): boolean {
    return this.#backend.answersInPart?.() === true;
  }

  isTransferring(): boolean {
    return this.#backend.isTransferring?.() === true;
  }

  now(): number {
    return this.#backend.now();
  }

  readonly clockErrorMs = (): number => this.#backend.clockErrorMs();

  /** `now + aheadMs()` never runs back: an entry that has expired would be fresh again. */
  aheadMs(): number {
    const backend = this.#backend;
    const ahead = backend.aheadMs?.() ?? backend.now() + backend.clockErrorMs() - this.#clock.now();
    if (ahead < this.#ahead - BACKLASH_MS)
      this.#bridge = Math.max(this.#bridge, this.#clock.now() + this.#ahead);
    this.#ahead = ahead;
    return this.#bridge === 0 ? ahead : this.#bridged(ahead);
  }

  /** By the exact time: a reading that lags would make it run back. */
  #bridged(ahead: number): number {
    const bridged = this.#bridge - this.#clock.now();
    if (bridged > ahead && bridged - ahead <= BRIDGED_STEP_MS) return bridged;
    this.#bridge = 0;
    return ahead;
  }

  /** Whether the store's clock may have reached `time`. */
  mayHaveReached(time: number): boolean {
    const local = time - this.aheadMs();
    // Usually it is far from it, and the coarse clock is enough to tell.
    return this.#clock.coarse() + NEAR_EXPIRY_MS >= local && this.#clock.now() >= local;
  }

  /** A time that the store's clock has certainly not reached, for checking many entries at once. */
  notYet(): number {
    return this.#clock.coarse() + NEAR_EXPIRY_MS + this.aheadMs();
  }

  read(key: string): Promise<Found> {
    return this.#afterFlush([key], () => this.#backend.read(key));
  }

  readHead(key: string, most: number): Promise<RecordHead | undefined> {
    const backend = this.#backend;
    return this.#afterFlush(
      [key],
      () => backend.readHead?.(key, most) ?? backend.read(key).then((record) => wholeHead(record)),
    );
  }

  /** A record whose payload may be missing; one that cannot be opened is absent. */
  async readHeader(key: string): Promise<Found> {
    const head = await this.readHead(key, 0);
    return head?.unread === undefined ? head?.record : this.read(key);
  }

  readThen(key: string, isWatched: boolean, taker: RecordTaker): void {
    const flushing = this.#outbox.size === 0 ? undefined : this.#outbox.flush([key]);
    const backend = this.#backend;
    if (flushing !== undefined)
      deliverTo(
        taker,
        this.#after(flushing, () => backend.read(key)),
      );
    else if (backend.readThen === undefined) deliverTo(taker, backend.read(key));
    else backend.readThen(key, isWatched, taker);
  }

  /** Whether stamps have to be read together with each entry, and can be. */
  get readsStamped(): boolean {
    return this.push === undefined && this.#backend.readStampedThen !== undefined;
  }

  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const flushing = this.#outbox.size === 0 ? undefined : this.#outbox.flush([key, ...stamps]);
    if (flushing === undefined) this.#backend.readStampedThen?.(key, stamps, taker);
    else
      this.#after(flushing, () => this.#backend.readMany([key, ...stamps])).then(
        ([record, ...present]) => taker.take(record, present.map(stampId)),
        (error: unknown) => taker.fail(error),
      );
  }

  readMany(keys: readonly string[], isWatched = true): Promise<readonly Found[]> {
    return this.#afterFlush(keys, () => this.#backend.readMany(keys, isWatched));
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    const backend = this.#backend;
    if (this.#outbox.size > 0 || backend.readManyThen === undefined)
      this.readMany(keys, isWatched).then(done, failed);
    else backend.readManyThen(keys, isWatched, done, failed);
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#afterFlush([item.key], () => this.#backend.write(item));
  }

  /** `call`: the call that the write belongs to. */
  writeThen(item: KeyedRecord, done: () => void, failed: Failed, call?: Ending): void {
    const flushing = this.#outbox.size === 0 ? undefined : this.#outbox.flush([item.key]);
    if (flushing !== undefined)
      this.#after(flushing, () => this.#backend.write(item), call).then(done, failed);
    else if (this.#backend.writeThen === undefined) this.#backend.write(item).then(done, failed);
    else this.#backend.writeThen(item, done, failed);
  }

  writeMany(items: readonly KeyedRecord[], call?: Ending): Promise<void> {
    return this.#afterFlush(
      items.map(({ key }) => key),
      () => this.#backend.writeMany(items),
      call,
    );
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#afterFlush([key], () => this.#backend.swap(key, expected, next));
  }

  take(key: string): Promise<Found> {
    return this.#afterFlush([key], () => this.#backend.take(key));
  }

  /** As `take`, where the payload is small; a large one stays where it is until it is gone. */
  async takeUnread(key: string): Promise<Found> {
    if (this.#backend.readHead === undefined) return this.take(key);
    const head = await this.readHead(key, 0);
    if (head === undefined || head.payloadBytes < LARGE_BYTES) return this.take(key);
    const { won } = await this.swap(key, head.record.version, undefined);
    // Replaced meanwhile.
    return won ? head.record : this.take(key);
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return this.#afterFlush(keys, () => this.#backend.takeMany(keys));
  }

  async removeMany(keys: readonly string[]): Promise<void> {
    const backend = this.#backend;
    await this.#afterFlush<unknown>(keys, () => backend.removeMany?.(keys) ?? backend.takeMany(keys));
  }

  async touch(keys: readonly string[]): Promise<void> {
    await this.#backend.touch?.(keys);
  }

  async *scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
    for await (const batch of this.#backend.scan(prefix, options)) {
      const flushing = this.#outbox.flush(batch.map(({ key }) => key));
      if (flushing === undefined) {
        yield batch;
        continue;
      }
      await flushing;
      const records = await this.#backend.readMany(batch.map(({ key }) => key));
      yield batch.flatMap(({ key, bytes }, at) => {
        const record = records[at];
        return record === undefined ? [] : [{ key, record, bytes }];
      });
    }
  }

  #versionNow(key: string): Token | undefined {
    if (this.#outbox.size > 0) return undefined;
    try {
      return this.#backend.versionNow?.(key);
    } catch {
      return undefined;
    }
  }

  usage(prefix: string): Promise<Usage> {
    return this.#backend.usage(prefix);
  }

  #afterFlush<T>(keys: readonly string[], work: () => Promise<T>, call?: Ending): Promise<T> {
    const flushing = this.#outbox.flush(keys);
    return flushing === undefined ? work() : this.#after(flushing, work, call);
  }

  /** Does not run `work` after the caller's deadline: a write that was reported as failed must not happen later. */
  async #after<T>(flushing: Promise<void>, work: () => Promise<T>, call?: Ending): Promise<T> {
    const due = this.#clock.now() + this.#operationTimeoutMs;
    await flushing;
    if (call?.isOver === true || this.#clock.now() >= due) {
      throw new OperationTimeoutError("delivering pending invalidations used up operation_timeout");
    }
    return work();
  }
}
