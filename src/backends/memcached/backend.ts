// The store on memcached: one server, or several on a consistent-hash ring.

import { parseStoreAddress } from "../../core/address/store-url.ts";
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  KeyedRecord,
  PoolState,
  RecordTaker,
  ScanItem,
  SwapResult,
  Usage,
} from "../../core/backend.ts";
import { ConfigError, ConnectionError, UnsupportedError } from "../../core/errors.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { redactUrl } from "../../core/redact.ts";
import { highestUsage } from "../wire/fullest.ts";
import { LazyClient, LazyModule } from "../wire/lazy-client.ts";
import { poolState } from "../wire/pool-state.ts";
import type { MemcachedNode } from "./node.ts";
import { nameOf } from "./ring.ts";
import type { Servers } from "./servers.ts";

export interface MemcachedOptions {
  /** memcached://host:port, or several hosts with commas between them. */
  readonly kvUrl: string;
}

const serversCode = new LazyModule(() => import("./servers.ts"));

export class MemcachedBackend implements Backend {
  readonly name = "memcached";
  readonly capabilities: Capabilities;
  readonly #url: string;
  readonly #servers: LazyClient<typeof import("./servers.ts"), Servers>;
  #host: BackendHost | undefined;

  /** Throws ConfigError for an address that is not one of memcached. */
  constructor({ kvUrl }: MemcachedOptions) {
    const address = parseStoreAddress(kvUrl);
    if (address.kind !== "memcached") {
      throw new ConfigError(
        "CONFIG_INVALID",
        `kvUrl must be an address of memcached, got ${redactUrl(kvUrl)}`,
        { hint: "Write memcached://host:11211, several hosts with commas between them." },
      );
    }
    if (new Set(address.hosts.map(nameOf)).size < address.hosts.length) {
      throw new ConfigError("CONFIG_INVALID", `kvUrl names a host twice, got ${redactUrl(kvUrl)}`, {
        hint: "Name every server once; upper and lower case are the same.",
      });
    }
    // On one server all stamps share a connection; of several each may be on another.
    const ordered = address.hosts.length === 1;
    this.capabilities = { shared: true, scan: false, ttlResolutionMs: 1_000, ordered };
    this.#url = redactUrl(kvUrl);
    this.#servers = new LazyClient(serversCode, (code) => new code.Servers(address, this.#opened));
  }

  open(host: BackendHost): void {
    this.#host = host;
    this.#servers.prepare();
  }

  async connect(): Promise<void> {
    await (await this.#servers.whenReady()).connect();
  }

  async disconnect(): Promise<void> {
    this.#servers.close();
  }

  async ping(): Promise<void> {
    const { nodes } = await this.#servers.whenReady();
    await Promise.all(nodes.map((node) => asked(node, (connection) => connection.ping())));
  }

  answersInPart(): boolean {
    const nodes = this.#servers.opened?.nodes ?? [];
    return nodes.length > 1 && nodes.some((node) => node.isAnswering());
  }

  now(): number {
    const now = this.#opened.clock.now();
    return now + this.#offset(now);
  }

  clockErrorMs(): number {
    const now = this.#opened.clock.coarse();
    return this.#ahead(now) - this.#offset(now);
  }

  aheadMs(): number {
    // The error grows by less than a millisecond in the time that this clock may lag.
    return this.#ahead(this.#opened.clock.coarse()) + 1;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#servers.use(({ records }) => records.read(key));
  }

  readThen(key: string, _isWatched: boolean, taker: RecordTaker): void {
    const servers = this.#servers.ready;
    if (servers !== undefined) servers.records.readThen(key, taker);
    else
      this.#servers.later(
        ({ records }) => records.readThen(key, taker),
        (error) => taker.fail(error),
      );
  }

  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const servers = this.#servers.ready;
    if (servers !== undefined) servers.records.readStampedThen(key, stamps, taker);
    else
      this.#servers.later(
        ({ records }) => records.readStampedThen(key, stamps, taker),
        (error) => taker.fail(error),
      );
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    const servers = this.#servers.ready;
    if (servers !== undefined) servers.records.writeThen(item, done, failed);
    else this.#servers.later(({ records }) => records.writeThen(item, done, failed), failed);
  }

  readMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#servers.use(({ records }) => records.readMany(keys));
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#servers.use(({ records }) => records.write(item));
  }

  writeMany(items: readonly KeyedRecord[]): Promise<void> {
    return this.#servers.use(({ records }) => records.writeMany(items));
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#servers.use(({ records }) => records.swap(key, expected, next));
  }

  take(key: string): Promise<StoreRecord | undefined> {
    return this.#servers.use(({ records }) => records.take(key));
  }

  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#servers.use(({ records }) => records.takeMany(keys));
  }

  touch(keys: readonly string[]): Promise<void> {
    return this.#servers.use(({ records }) => records.touch(keys));
  }

  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *scan(): AsyncIterable<readonly ScanItem[]> {
    throw new UnsupportedError("memcached cannot list keys", {
      operation: "keys",
      hint: "Give entries a tag and use invalidateTags(), or use Redis, Valkey or a file:// store.",
    });
  }

  /** Of all items on the servers, whoever put them there: memcached does not tell them apart by prefix. */
  async usage(): Promise<Usage> {
    const { nodes } = await this.#servers.whenReady();
    const answers = await Promise.allSettled(
      nodes.map((node) => asked(node, (connection) => node.statistics(connection))),
    );
    const told = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const failed = answers.find((answer) => answer.status === "rejected");
    if (told.length === 0 && failed !== undefined) throw failed.reason;
    const sum = (name: string): number =>
      told.reduce((total, statistics) => total + Number(statistics.get(name) ?? 0), 0);
    return { keys: sum("curr_items"), bytes: sum("bytes"), approximate: true, scope: "server" };
  }

  fill(): Promise<number | undefined> {
    return this.#servers.opened?.fill() ?? highestUsage([]);
  }

  makesRoom(): boolean {
    return this.#servers.opened?.nodes.every(({ facts }) => facts.evicts) === true;
  }

  pool(): PoolState {
    return poolState(this.#servers.opened?.nodes.flatMap(({ links }) => links) ?? []);
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    const servers = await this.#servers.whenReady();
    await servers.connect();
    const up = servers.nodes.filter(({ links }) => links.some(({ connection }) => connection !== undefined));
    const facts = up[0]?.facts;
    return {
      address: this.#url,
      kind: "memcached",
      version: facts?.version ?? "unknown",
      servers: servers.nodes.length,
      serversUp: up.length,
      largestRecordBytes: Math.min(...up.map((node) => node.facts.largestRecord)),
      evicts: up.every((node) => node.facts.evicts),
    };
  }

  get #opened(): BackendHost {
    if (this.#host === undefined)
      throw new ConnectionError("the store was not opened", { code: "DISCONNECTED" });
    return this.#host;
  }

  /** What is added to our time: the earliest that the server's may be, so that nothing is ever written to expire late. */
  #offset(now: number): number {
    return this.#reference()?.time.low(now) ?? 0;
  }

  #ahead(now: number): number {
    return this.#reference()?.time.high(now) ?? 0;
  }

  #reference(): MemcachedNode | undefined {
    return this.#servers.opened?.reference();
  }
}

function asked<T>(
  node: MemcachedNode,
  question: (connection: NonNullable<MemcachedNode["ahead"]["connection"]>) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    node.links[0]?.whenUp((connection) => question(connection).then(resolve, reject), reject);
  });
}
