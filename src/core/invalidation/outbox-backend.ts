// A backend whose keys are settled before they are used: what the outbox still has for them goes first.
import {
  type Backend,
  type Capabilities,
  deliverTo,
  type Failed,
  type KeyedRecord,
  type PoolState,
  type PushChannel,
  type RecordTaker,
  type ScanItem,
  type ScanOptions,
  type SwapResult,
  type TakenMany,
  type Usage,
} from "../backend.ts";
import { type Clock, COARSE_LAG_MS } from "../clock.ts";
import { OperationTimeoutError } from "../errors.ts";
import { type StoreRecord, stampId, type Token } from "../record.ts";
import type { Outcome } from "../resilience/guarded-call.ts";
import type { Outbox } from "./outbox.ts";

type Found = StoreRecord | undefined;
type Ending = Pick<Outcome<void>, "isOver">;

export class OutboxBackend implements Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly push?: PushChannel;
  readonly pool?: () => PoolState;
  readonly describe?: NonNullable<Backend["describe"]>;
  readonly fill?: NonNullable<Backend["fill"]>;
  readonly makesRoom?: NonNullable<Backend["makesRoom"]>;
  /** Also undefined while anything is owed to the store, or when it fails: then it is asked in full. */
  readonly versionNow?: NonNullable<Backend["versionNow"]>;
  readonly #backend: Backend;
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #operationTimeoutMs: number;

  constructor(backend: Backend, outbox: Outbox, clock: Clock, operationTimeoutMs: number) {
    this.name = backend.name;
    this.capabilities = backend.capabilities;
    if (backend.push !== undefined) this.push = backend.push;
    if (backend.pool !== undefined) this.pool = backend.pool.bind(backend);
    if (backend.describe !== undefined) this.describe = backend.describe.bind(backend);
    if (backend.fill !== undefined) this.fill = backend.fill.bind(backend);
    if (backend.makesRoom !== undefined) this.makesRoom = backend.makesRoom.bind(backend);
    if (backend.versionNow !== undefined) this.versionNow = (key) => this.#versionNow(key);
    this.#backend = backend;
    this.#outbox = outbox;
    this.#clock = clock;
    this.#operationTimeoutMs = operationTimeoutMs;
  }

  /** Whether changes of stamps need not wait for each other: they are carried out in the order they are made. */
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

  now(): number {
    return this.#backend.now();
  }

  clockErrorMs(): number {
    return this.#backend.clockErrorMs();
  }

  aheadMs(): number {
    const backend = this.#backend;
    return backend.aheadMs?.() ?? backend.now() + backend.clockErrorMs() - this.#clock.now();
  }

  /** Whether the store's time may have come to `time`. */
  mayHaveReached(time: number): boolean {
    const local = time - this.aheadMs();
    // Nearly always it has not by far, and the coarse time says so.
    return this.#clock.coarse() + 2 * COARSE_LAG_MS >= local && this.#clock.now() >= local;
  }

  /** A time that the store has surely not come to, for many that are looked at together. */
  notYet(): number {
    return this.#clock.coarse() + 2 * COARSE_LAG_MS + this.aheadMs();
  }

  read(key: string): Promise<Found> {
    return this.#settled([key], () => this.#backend.read(key));
  }

  readThen(key: string, isWatched: boolean, taker: RecordTaker): void {
    const settling = this.#outbox.size === 0 ? undefined : this.#outbox.settle([key]);
    const backend = this.#backend;
    if (settling !== undefined)
      deliverTo(
        taker,
        this.#after(settling, () => backend.read(key)),
      );
    else if (backend.readThen === undefined) deliverTo(taker, backend.read(key));
    else backend.readThen(key, isWatched, taker);
  }

  /** Whether stamps can be read together with an entry, and have to be. */
  get readsStamped(): boolean {
    return this.push === undefined && this.#backend.readStampedThen !== undefined;
  }

  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const settling = this.#outbox.size === 0 ? undefined : this.#outbox.settle([key, ...stamps]);
    if (settling === undefined) this.#backend.readStampedThen?.(key, stamps, taker);
    else
      this.#after(settling, () => this.#backend.readMany([key, ...stamps])).then(
        ([record, ...present]) => taker.take(record, present.map(stampId)),
        (error: unknown) => taker.fail(error),
      );
  }

  readMany(keys: readonly string[], isWatched = true): Promise<readonly Found[]> {
    return this.#settled(keys, () => this.#backend.readMany(keys, isWatched));
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    const backend = this.#backend;
    if (this.#outbox.size > 0 || backend.readManyThen === undefined)
      this.readMany(keys, isWatched).then(done, failed);
    else backend.readManyThen(keys, isWatched, done, failed);
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#settled([item.key], () => this.#backend.write(item));
  }

  /** `call`: whoever it is for. */
  writeThen(item: KeyedRecord, done: () => void, failed: Failed, call?: Ending): void {
    const settling = this.#outbox.size === 0 ? undefined : this.#outbox.settle([item.key]);
    if (settling !== undefined)
      this.#after(settling, () => this.#backend.write(item), call).then(done, failed);
    else if (this.#backend.writeThen === undefined) this.#backend.write(item).then(done, failed);
    else this.#backend.writeThen(item, done, failed);
  }

  writeMany(items: readonly KeyedRecord[], call?: Ending): Promise<void> {
    return this.#settled(
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
    return this.#settled([key], () => this.#backend.swap(key, expected, next));
  }

  take(key: string): Promise<Found> {
    return this.#settled([key], () => this.#backend.take(key));
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return this.#settled(keys, () => this.#backend.takeMany(keys));
  }

  async removeMany(keys: readonly string[]): Promise<void> {
    const backend = this.#backend;
    await this.#settled<unknown>(keys, () => backend.removeMany?.(keys) ?? backend.takeMany(keys));
  }

  async touch(keys: readonly string[]): Promise<void> {
    await this.#backend.touch?.(keys);
  }

  async *scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
    for await (const batch of this.#backend.scan(prefix, options)) {
      const settling = this.#outbox.settle(batch.map(({ key }) => key));
      if (settling === undefined) {
        yield batch;
        continue;
      }
      await settling;
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

  #settled<T>(keys: readonly string[], work: () => Promise<T>, call?: Ending): Promise<T> {
    const settling = this.#outbox.settle(keys);
    return settling === undefined ? work() : this.#after(settling, work, call);
  }

  /** Unless it took so long that the caller has been told of a failure: what is done after that would come out of the blue. */
  async #after<T>(settling: Promise<void>, work: () => Promise<T>, call?: Ending): Promise<T> {
    const due = this.#clock.now() + this.#operationTimeoutMs;
    await settling;
    if (call?.isOver === true || this.#clock.now() >= due) {
      throw new OperationTimeoutError("what was owed to the store took the whole of operation_timeout");
    }
    return work();
  }
}
