// The store on Redis or Valkey: one server, the master that sentinels name, or a cluster.
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  KeyedRecord,
  PoolState,
  PushChannel,
  ScanItem,
  ScanOptions,
  SwapResult,
  Taken,
  TakenMany,
  Usage,
} from "../../core/backend.ts";
import { ConfigError, ConnectionError } from "../../core/errors.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import { redactUrl } from "../../core/redact.ts";
import { parseStoreAddress } from "../../core/store-url.ts";
import type { Connection } from "./connection.ts";
import { nodesFill } from "./fill.ts";
import type { KvNode } from "./node.ts";
import { isKvAddress, type KvAddress, openRouter } from "./open-router.ts";
import { type Commands, Records } from "./records.ts";
import type { Router } from "./router.ts";
import { nodeUsage, scanNode } from "./scan.ts";
import type { ServerFacts } from "./server-facts.ts";
import { Trust } from "./trust.ts";

export interface KvOptions {
  /** redis://, rediss://, unix://, redis+cluster://, redis+sentinel:// or a valkey form of them. */
  readonly kvUrl: string;
}

export class KvBackend implements Backend {
  readonly name = "kv";
  readonly capabilities: Capabilities;
  readonly push: PushChannel;
  readonly #address: KvAddress;
  readonly #url: string;
  readonly #listeners = new Set<(key: string | undefined) => void>();
  readonly #trust: Trust;
  #host: BackendHost | undefined;
  #router: Router | undefined;
  #records: Records | undefined;

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
    this.#address = address;
    this.#url = redactUrl(kvUrl);
    const trust = new Trust(() => this.#isTrusted());
    this.#trust = trust;
    this.push = {
      epoch: (key) => this.#router?.epoch(key, trust.holds()) ?? 0,
      isTrusted: () => trust.holds(),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }

  open(host: BackendHost): void {
    this.#host = host;
  }

  async connect(): Promise<void> {
    await this.#open().connect();
  }

  async disconnect(): Promise<void> {
    this.#router?.close();
    this.#router = undefined;
    this.#records = undefined;
  }

  async ping(): Promise<void> {
    const nodes = await this.#open().masters();
    await Promise.all(nodes.map((node) => node.links[0]?.command("PING")));
  }

  answersInPart(): boolean {
    const nodes = this.#router?.nodes ?? [];
    const { clock, operationTimeoutMs } = this.#opened;
    const now = clock.now();
    return nodes.length > 1 && nodes.some((node) => node.isAnswering(now, operationTimeoutMs));
  }

  now(): number {
    const now = this.#opened.clock.now();
    return now + (this.#offset(now, -1) + this.#offset(now, 1)) / 2;
  }

  clockErrorMs(): number {
    const now = this.#opened.clock.coarse();
    return (this.#offset(now, 1) - this.#offset(now, -1)) / 2;
  }

  aheadMs(): number {
    // The error grows by less than a millisecond in the time that this clock may lag.
    return this.#offset(this.#opened.clock.coarse(), 1) + 1;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return this.#store().read(key);
  }

  readThen(key: string, isWatched: boolean, done: Taken, failed: Failed): void {
    this.#store().readThen(key, isWatched, done, failed);
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    this.#store().writeThen(item, done, failed);
  }

  readMany(keys: readonly string[], isWatched = true): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#store().readMany(keys, isWatched);
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    this.#store().readManyThen(keys, isWatched, done, failed);
  }

  write(item: KeyedRecord): Promise<void> {
    return this.#store().write(item);
  }

  writeMany(items: readonly KeyedRecord[]): Promise<void> {
    return this.#store().writeMany(items);
  }

  swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    return this.#store().swap(key, expected, next);
  }

  take(key: string): Promise<StoreRecord | undefined> {
    return this.#store().take(key);
  }

  takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return this.#store().takeMany(keys);
  }

  touch(keys: readonly string[]): Promise<void> {
    return this.#store().touch(keys);
  }

  async *scan(prefix: string, { signal }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    for (const node of await this.#open().masters()) yield* scanNode(node, prefix, signal);
  }

  async usage(prefix: string): Promise<Usage> {
    const nodes = await this.#open().masters();
    const parts = await Promise.all(nodes.map((node) => nodeUsage(node, prefix, this.#opened.clock.now)));
    return parts.reduce((sum, part) => ({
      keys: sum.keys + part.keys,
      bytes: sum.bytes + part.bytes,
      approximate: true,
    }));
  }

  fill(): Promise<number | undefined> {
    return nodesFill(this.#router?.nodes ?? []);
  }

  /** By what each said when it was met. */
  makesRoom(): boolean {
    const nodes = this.#router?.nodes ?? [];
    return nodes.every(({ facts }) => (facts.evictionPolicy ?? NO_EVICTION) !== NO_EVICTION);
  }

  pool(): PoolState {
    const links = this.#router?.nodes.flatMap(({ links }) => links) ?? [];
    const inUse = links.filter(({ connection }) => (connection?.inFlight ?? 0) > 0).length;
    const waiting = links.reduce((sum, link) => sum + link.waiting, 0);
    const full = links.filter((link) => link.waiting > 0 || link.connection?.isClogged === true).length;
    return { size: links.length, inUse, idle: links.length - inUse, waiting, full };
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    const nodes = await this.#open().masters();
    await nodes[0]?.connect();
    const facts = nodes[0]?.facts;
    return {
      address: this.#url,
      kind: this.#address.kind,
      server: facts?.kind ?? "unknown",
      version: facts?.version ?? "unknown",
      masters: nodes.length,
      tracking: nodes.every((node) => node.tracks),
      ...(facts?.evictionPolicy === undefined ? {} : memoryFacts(facts)),
    };
  }

  get #opened(): BackendHost {
    if (this.#host === undefined)
      throw new ConnectionError("the store was not opened", { code: "DISCONNECTED" });
    return this.#host;
  }

  #isTrusted(): boolean {
    const nodes = this.#router?.nodes ?? [];
    // Each is asked: whoever is relied on is kept awake.
    return nodes.length > 0 && nodes.map((node) => node.isTrusted()).every(Boolean);
  }

  #open(): Router {
    this.#router ??= openRouter(this.#address, {
      host: this.#opened,
      met: (node, connection) => this.#met(node, connection),
      changed: (key) => {
        if (key === undefined) this.#trust.doubt();
        for (const listener of this.#listeners) listener(key);
      },
    });
    return this.#router;
  }

  #store(): Records {
    this.#records ??= new Records(this.#open());
    return this.#records;
  }

  /** The servers' time minus ours: the latest it may be on any of them, or the earliest with a `side` of -1. */
  #offset(now: number, side: 1 | -1): number {
    let furthest = Number.NEGATIVE_INFINITY;
    for (const { time } of this.#router?.nodes ?? []) {
      if (time.setAt > 0) furthest = Math.max(furthest, time.offset * side + time.errorMs(now));
    }
    return furthest === Number.NEGATIVE_INFINITY ? 0 : furthest * side;
  }

  /** The server behind a new connection may have been restored from a snapshot, or have taken another one's place. */
  async #met(node: KvNode, connection: Connection): Promise<void> {
    const { runId, uptimeSeconds } = node.facts;
    const router = this.#open();
    if (runId === undefined) return;
    const records = new Records(throughConnection(connection, node, router));
    const now = (): number => this.now();
    await this.#opened.met({
      anchor: router.anchor(node),
      runId,
      startedAt: now() - uptimeSeconds * 1_000,
      lastProvenAt: node.lastProvenAt,
      records: {
        now,
        read: (key) => records.read(key),
        write: (item) => records.write(item),
        take: (key) => records.take(key),
      },
      owns: (key) => router.isOn(key, node),
    });
  }
}

const NO_EVICTION = "noeviction";

function memoryFacts({ evictionPolicy = "", maxMemoryBytes, usedMemoryBytes }: ServerFacts) {
  return { evictionPolicy, maxMemoryBytes, usedMemoryBytes };
}

/** What concerns the server behind a connection that is not in use yet goes over that; the rest as always. */
function throughConnection(connection: Connection, node: KvNode, router: Router): Commands {
  return {
    send: (key, args, answer) => {
      if (router.isOn(key, node)) connection.send(args, answer);
      else (router.ahead ?? router).send(key, args, answer);
    },
    read: (key, isWatched, answer) => {
      if (router.isOn(key, node)) connection.read(key, isWatched, answer);
      else (router.ahead ?? router).read(key, isWatched, answer);
    },
  };
}
