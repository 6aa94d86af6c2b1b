// Decorates a backend: payloads of entries are sealed before they are written and opened when they are read. On request keys
// and tags are hidden from the store as well.
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  KeyedRecord,
  PushChannel,
  RecordHead,
  RecordTaker,
  ScanItem,
  ScanOptions,
  SwapResult,
  TakenMany,
  Usage,
} from "../backend.ts";
import type { CodecError } from "../errors.ts";
import { wholeHead } from "../frame/frame.ts";
import { frameTime } from "../frame/frame-writer.ts";
import type { Entry, Lease, Payload, StoreRecord, Token } from "../record.ts";
import { HiddenKeys, type NameCipher } from "./hidden-keys.ts";

export type SealHost = Pick<BackendHost, "clock" | "connectTimeoutMs" | "report">;

/** Encrypts payloads, bound to the entries they belong to. */
export interface Seal {
  /** Obtains the keys; called before anything is sealed or opened. */
  prepare(host: SealHost): Promise<void>;
  /** Whether it has keys. */
  readonly isReady: boolean;
  /** Both get the entry as it is framed: see `asFramed`. */
  seal(entry: Entry): Payload;
  /** Throws CodecError for a payload that is not sealed, was altered or moved, or whose key is not known. */
  open(entry: Entry): Payload;
  /** Keys and tags are hidden with it. */
  readonly names?: NameCipher | undefined;
}

/** Payloads up to this length are opened, whatever part of them is wanted. */
const OPENED_BYTES = 4_096;
/** More than sealing adds to a payload. */
const SEAL_BYTES = 512;

type Found = StoreRecord | undefined;
type Records = Pick<Backend, "read" | "write" | "take" | "now">;

export class SealedBackend implements Backend {
  readonly name: string;
  readonly capabilities: Capabilities;
  readonly push?: PushChannel;
  readonly answersInPart?: NonNullable<Backend["answersInPart"]>;
  readonly isTransferring?: NonNullable<Backend["isTransferring"]>;
  readonly aheadMs?: NonNullable<Backend["aheadMs"]>;
  readonly readHead?: NonNullable<Backend["readHead"]>;
  readonly readThen?: NonNullable<Backend["readThen"]>;
  readonly writeThen?: NonNullable<Backend["writeThen"]>;
  readonly readStampedThen?: NonNullable<Backend["readStampedThen"]>;
  readonly versionNow?: NonNullable<Backend["versionNow"]>;
  readonly readManyThen?: NonNullable<Backend["readManyThen"]>;
  readonly removeMany?: NonNullable<Backend["removeMany"]>;
  readonly touch?: NonNullable<Backend["touch"]>;
  readonly memoryUsage?: NonNullable<Backend["memoryUsage"]>;
  readonly makesRoom?: NonNullable<Backend["makesRoom"]>;
  readonly restrictions?: NonNullable<Backend["restrictions"]>;
  readonly pool?: NonNullable<Backend["pool"]>;
  readonly describe?: NonNullable<Backend["describe"]>;
  readonly #backend: Backend;
  readonly #seal: Seal;
  readonly #keys: HiddenKeys;
  /** Undefined until it is opened. */
  #host: BackendHost | undefined;

  constructor(backend: Backend, seal: Seal) {
    this.name = backend.name;
    this.capabilities = backend.capabilities;
    this.#backend = backend;
    this.#seal = seal;
    this.#keys = new HiddenKeys(seal.names);
    if (backend.push !== undefined) this.push = this.#keys.pushChannel(backend.push);
    const { versionNow, removeMany, touch, restrictions } = backend;
    // What has nothing to do with records is the backend's own.
    const own = {
      answersInPart: backend.answersInPart?.bind(backend),
      isTransferring: backend.isTransferring?.bind(backend),
      aheadMs: backend.aheadMs?.bind(backend),
      versionNow: versionNow && ((key: string) => versionNow.call(backend, this.#keys.hide(key))),
      removeMany: removeMany && ((keys: readonly string[]) => removeMany.call(backend, this.#hideAll(keys))),
      touch: touch && ((keys: readonly string[]) => touch.call(backend, this.#hideAll(keys))),
      memoryUsage: backend.memoryUsage?.bind(backend),
      makesRoom: backend.makesRoom?.bind(backend),
      restrictions: restrictions && ((key: string) => restrictions.call(backend, this.#keys.hide(key))),
      pool: backend.pool?.bind(backend),
      describe: backend.describe?.bind(backend),
      readHead: backend.readHead && this.#readHead,
      readThen: backend.readThen && this.#readThen,
      writeThen: backend.writeThen && this.#writeThen,
      readStampedThen: backend.readStampedThen && this.#readStampedThen,
      readManyThen: backend.readManyThen && this.#readManyThen,
    };
    for (const [name, method] of Object.entries(own))
      if (method !== undefined) Object.defineProperty(this, name, { value: method });
  }

  open(host: BackendHost): void {
    this.#host = host;
    this.#backend.open?.({
      ...host,
      report: (error) => host.report(error),
      evicted: (key) => {
        const name = this.#keys.reveal(key);
        if (name !== undefined) host.evicted(name);
      },
      connected: () => host.connected?.(),
      onServer: (server) =>
        host.onServer({
          ...server,
          records: this.#sealed(server.records),
          owns: (key) => server.owns(this.#keys.hide(key)),
        }),
    });
  }

  async connect(): Promise<void> {
    if (!this.#seal.isReady) await this.#prepare();
    await this.#backend.connect();
  }

  #prepare(): Promise<void> {
    return this.#seal.prepare(this.#host as BackendHost);
  }

  disconnect(): Promise<void> {
    return this.#backend.disconnect();
  }

  ping(): Promise<void> {
    return this.#backend.ping();
  }

  now(): number {
    return this.#backend.now();
  }

  clockErrorMs(): number {
    return this.#backend.clockErrorMs();
  }

  async read(key: string): Promise<Found> {
    return this.#opened(await this.#backend.read(this.#keys.hide(key)));
  }

  async readMany(keys: readonly string[], isWatched?: boolean): Promise<readonly Found[]> {
    const records = await this.#backend.readMany(this.#hideAll(keys), isWatched);
    return records.map((record) => this.#opened(record));
  }

  /** What is sealed can only be opened whole: of a long payload nothing is read. */
  readonly #readHead = async (key: string, most: number): Promise<RecordHead | undefined> => {
    const head = await this.#backend.readHead?.(
      this.#keys.hide(key),
      Math.max(most, OPENED_BYTES) + SEAL_BYTES,
    );
    if (head === undefined) return undefined;
    if (wholeHead(head.record)?.payloadBytes === head.payloadBytes)
      return wholeHead(this.#opened(head.record));
    const record = this.#revealed(head.record);
    return (
      record && {
        record,
        payloadBytes: head.payloadBytes,
        unread: "it is encrypted, and can only be read whole",
      }
    );
  };

  /** This and `take` deliver pending invalidations, also before anybody has connected. */
  async write(item: KeyedRecord): Promise<void> {
    if (!this.#seal.isReady) await this.#prepare();
    await this.#backend.write(this.#closed(item));
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await this.#backend.writeMany(items.map((item) => this.#closed(item)));
  }

  async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    const hidden = this.#keys.hide(key);
    const closed = next && { ...next, record: this.#closedRecord(next.record) };
    const result = await this.#backend.swap(hidden, expected, closed);
    return result.won ? result : { won: false, current: this.#opened(result.current) };
  }

  /** What was removed is judged by its header alone. */
  async take(key: string): Promise<Found> {
    if (!this.#seal.isReady) await this.#prepare();
    return this.#revealed(await this.#backend.take(this.#keys.hide(key)));
  }

  async takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    const records = await this.#backend.takeMany(this.#hideAll(keys));
    return records.map((record) => this.#revealed(record));
  }

  async *scan(prefix: string, options?: ScanOptions): AsyncIterable<readonly ScanItem[]> {
    for await (const batch of this.#backend.scan(this.#keys.path(prefix), options)) {
      const items: ScanItem[] = [];
      for (const { key, record, bytes } of batch) {
        const name = this.#keys.reveal(key);
        const revealed = this.#revealed(record);
        if (name?.startsWith(prefix) && revealed !== undefined)
          items.push({ key: name, record: revealed, bytes });
      }
      yield items;
    }
  }

  usage(prefix: string): Promise<Usage> {
    return this.#backend.usage(this.#keys.path(prefix));
  }

  readonly #readThen = (key: string, isWatched: boolean, taker: RecordTaker): void => {
    this.#backend.readThen?.(this.#keys.hide(key), isWatched, this.#taker(taker));
  };

  readonly #readStampedThen = (key: string, stamps: readonly string[], taker: RecordTaker): void => {
    this.#backend.readStampedThen?.(this.#keys.hide(key), this.#hideAll(stamps), this.#taker(taker));
  };

  readonly #readManyThen = (
    keys: readonly string[],
    isWatched: boolean,
    done: TakenMany,
    failed: Failed,
  ): void => {
    const taken: TakenMany = (records) => done(records.map((record) => this.#opened(record)));
    this.#backend.readManyThen?.(this.#hideAll(keys), isWatched, taken, failed);
  };

  readonly #writeThen = (item: KeyedRecord, done: () => void, failed: Failed): void => {
    this.#backend.writeThen?.(this.#closed(item), done, failed);
  };

  #hideAll(keys: readonly string[]): readonly string[] {
    return this.#seal.names === undefined ? keys : keys.map((key) => this.#keys.hide(key));
  }

  #taker(taker: RecordTaker): RecordTaker {
    return {
      take: (record, stamps) => taker.take(this.#opened(record), stamps),
      fail: (error) => taker.fail(error),
    };
  }

  #sealed(records: Records): Records {
    return {
      read: async (key) => this.#opened(await records.read(this.#keys.hide(key))),
      write: async (item) => records.write(this.#closed(item)),
      take: async (key) => this.#revealed(await records.take(this.#keys.hide(key))),
      now: () => records.now(),
    };
  }

  #closed(item: KeyedRecord): KeyedRecord {
    return { ...item, key: this.#keys.hide(item.key), record: this.#closedRecord(item.record) };
  }

  #closedRecord(record: StoreRecord): StoreRecord {
    if (record.kind === "stamp") return record;
    if (record.kind === "entry") return this.#closedEntry(record);
    const { behind } = record;
    const lease = this.#keys.hidden(record);
    return behind === undefined ? lease : { ...lease, behind: this.#closedEntry(behind) };
  }

  #closedEntry(entry: Entry): Entry {
    if (!isOfUser(entry)) return entry;
    const framed = asFramed(entry);
    return { ...this.#keys.hidden(framed), payload: this.#seal.seal(framed) };
  }

  /** As `opened`, without the payload. */
  #revealed(record: Found): Found {
    if (record === undefined || record.kind === "stamp") return record;
    return this.#keys.revealed(record);
  }

  /** An entry that cannot be opened is absent: in its place is a lease whose load has ended, which the next load replaces. */
  #opened(record: Found): Found {
    if (record === undefined || record.kind === "stamp") return record;
    if (record.kind === "entry")
      return this.#openedEntry(record) ?? ended(this.#keys.revealed(record) ?? record);
    const revealed = this.#keys.revealed(record);
    // Absent, it would be in the way of every load.
    if (revealed === undefined) return ended(record);
    if (revealed.behind === undefined) return revealed;
    const { behind: _, ...lease } = revealed;
    const behind = this.#openedEntry(record.behind as Entry);
    return behind === undefined ? lease : { ...lease, behind };
  }

  #openedEntry(entry: Entry): Entry | undefined {
    if (!isOfUser(entry)) return entry;
    const revealed = this.#keys.revealed(entry);
    if (revealed === undefined) return undefined;
    try {
      return { ...revealed, payload: this.#seal.open(revealed) };
    } catch (error) {
      this.#host?.report(error as CodecError);
      return undefined;
    }
  }
}

/** The library's own records are counts and the names of servers, and must be read whatever keys a process has. */
const isOfUser = ({ key }: Entry): boolean => /^[^:!]*:/.test(key);

/** Written and read again, an entry is the same: a frame holds whole milliseconds, up to a latest time. */
function asFramed(entry: Entry): Entry {
  return {
    ...entry,
    created: frameTime(entry.created),
    expires: endAsFramed(entry.expires),
    staleUntil: endAsFramed(entry.staleUntil),
  };
}

const endAsFramed = (time: number): number => (time === Number.POSITIVE_INFINITY ? time : frameTime(time));

const ended = ({ version, key, namespaceStamps, tags }: Entry | Lease): Lease => ({
  kind: "lease",
  version,
  key,
  namespaceStamps,
  tags,
  expires: 0,
});
