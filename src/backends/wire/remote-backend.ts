// What the backends of remote stores share: a client that is loaded and opened lazily, and calls that are handed to it.
import type {
  Backend,
  BackendHost,
  Failed,
  KeyedRecord,
  PoolState,
  RecordTaker,
  SwapResult,
  Usage,
} from "../../core/backend.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { LazyModule } from "../../core/lazy-module.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { LazyClient } from "./lazy-client.ts";
import { highestUsage, poolState } from "./pool.ts";

type Methods<Name extends keyof Backend> = Required<Pick<Backend, Name>>;

export type RemoteCommands = Methods<
  | "read"
  | "readThen"
  | "readMany"
  | "write"
  | "writeThen"
  | "writeMany"
  | "swap"
  | "take"
  | "takeMany"
  | "touch"
>;

/** The servers of a store. */
export interface RemoteClient
  extends Methods<
    | "connect"
    | "ping"
    | "answersInPart"
    | "isTransferring"
    | "now"
    | "clockErrorMs"
    | "aheadMs"
    | "usage"
    | "memoryUsage"
    | "makesRoom"
    | "pool"
    | "describe"
  > {
  readonly commands: RemoteCommands;
  close(): void;
}

export abstract class RemoteBackend<Code, Client extends RemoteClient> {
  protected readonly client: LazyClient<Code, Client>;
  /** Undefined until the backend is opened. */
  protected host: BackendHost | undefined;
  /** The beginning of `describe()`. */
  protected abstract readonly identity: { readonly address: string; readonly kind: string };

  constructor(code: LazyModule<Code>) {
    this.client = new LazyClient(code, (loaded) => this.openClient(loaded, this.#openedHost));
  }

  protected abstract openClient(code: Code, host: BackendHost): Client;

  open(host: BackendHost): void {
    this.host = host;
    this.client.prepare();
  }

  async connect(): Promise<void> {
    this.client.reopen();
    await (await this.client.whenReady()).connect();
  }

  async disconnect(): Promise<void> {
    this.client.close();
  }

  ping(): Promise<void> {
    return this.client.use((client) => client.ping());
  }

  answersInPart(): boolean {
    return this.client.opened?.answersInPart() ?? false;
  }

  isTransferring(): boolean {
    return this.client.opened?.isTransferring() ?? false;
  }

  now(): number {
    return this.client.opened?.now() ?? this.#openedHost.clock.now();
  }

  clockErrorMs(): number {
    return this.client.opened?.clockErrorMs() ?? 0;
  }

  aheadMs(): number {
    return this.client.opened?.aheadMs() ?? 1;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.client.use(({ commands }) => commands.read(key));
  }

  readThen(key: string, isWatched: boolean, taker: RecordTaker): void {
    const client = this.client.ready;
    if (client !== undefined) client.commands.readThen(key, isWatched, taker);
    else this.#readLater(key, isWatched, taker);
  }

  readMany(keys: readonly string[], isWatched = true): Promise<readonly (StoreRecord | undefined)[]> {
    return this.client.use(({ commands }) => commands.readMany(keys, isWatched));
  }

  write(item: KeyedRecord): Promise<void> {
    return this.client.use(({ commands }) => commands.write(item));
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    const client = this.client.ready;
    if (client !== undefined) client.commands.writeThen(item, done, failed);
    else this.#writeLater(item, done, failed);
  }

  writeMany(items: readonly KeyedRecord[]): Promise<void> {
    return this.client.use(({ commands }) => commands.writeMany(items));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.client.use(({ commands }) => commands.swap(key, expected, next));
  }

  take(key: string): Promise<StoreRecord | undefined> {
    return this.client.use(({ commands }) => commands.take(key));
  }

  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.client.use(({ commands }) => commands.takeMany(keys));
  }

  touch(keys: readonly string[]): Promise<void> {
    return this.client.use(({ commands }) => commands.touch(keys));
  }

  usage(prefix: string): Promise<Usage> {
    return this.client.use((client) => client.usage(prefix));
  }

  memoryUsage(): Promise<number | undefined> {
    return this.client.opened?.memoryUsage() ?? highestUsage([], async () => undefined);
  }

  pool(): PoolState {
    return this.client.opened?.pool() ?? poolState([]);
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    return { ...this.identity, ...(await this.client.use((client) => client.describe())) };
  }

  // Apart from their callers: a closure in those would cost every call a context.
  #readLater(key: string, isWatched: boolean, taker: RecordTaker): void {
    this.client.later(
      ({ commands }) => commands.readThen(key, isWatched, taker),
      (error) => taker.fail(error),
    );
  }

  #writeLater(item: KeyedRecord, done: () => void, failed: Failed): void {
    this.client.later(({ commands }) => commands.writeThen(item, done, failed), failed);
  }

  get #openedHost(): BackendHost {
    if (this.host === undefined)
      throw new ConnectionError("the store was not opened", { code: "DISCONNECTED" });
    return this.host;
  }
}
