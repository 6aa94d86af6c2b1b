// The servers of the store: which one a key is on, whose time counts, and what they report about themselves.
import { type MemcachedAddress, nameOf } from "../../core/address/address.ts";
import type { BackendHost, PoolState, Usage } from "../../core/backend.ts";
import { repeatedIfLost } from "../wire/connection-error.ts";
import { highestUsage, poolState, shareOf } from "../wire/pool.ts";
import type { RemoteClient } from "../wire/remote-backend.ts";
import { type KeyLocator, MemcachedCommands } from "./commands.ts";
import type { Connection } from "./connection.ts";
import { ItemKeys } from "./item-key.ts";
import { type ConnectionSource, type KeyLocation, MemcachedNode, overConnection } from "./node.ts";
import { anchoredTo, anchorFor, Ring } from "./ring.ts";

/** The share of operation_timeout that connecting waits for slow servers once another one is connected. */
const PATIENCE = 0.5;

export class Servers implements RemoteClient, KeyLocator {
  /** In the order of the ring. */
  readonly nodes: readonly MemcachedNode[];
  readonly commands: MemcachedCommands;
  readonly #ring: Ring;
  readonly #host: BackendHost;

  constructor({ hosts }: MemcachedAddress, host: BackendHost) {
    const { clock, operationTimeoutMs, connectTimeoutMs, poolSize } = host;
    this.#ring = new Ring(hosts);
    this.#host = host;
    const keys = new ItemKeys(this.#ring.fingerprint);
    const settings = { clock, operationTimeoutMs, connectTimeoutMs, keys };
    const byName = new Map(hosts.map((endpoint) => [nameOf(endpoint), endpoint]));
    this.nodes = this.#ring.names.map((name) => {
      const endpoint = byName.get(name) as MemcachedAddress["hosts"][0];
      return new MemcachedNode(endpoint, {
        clock,
        poolSize,
        settings,
        onServer: (node, connection) => this.#onServer(node, connection),
        up: () => host.connected?.(),
      });
    });
    this.commands = new MemcachedCommands(this);
  }

  /**
   * Resolves when every server is connected, or some are and the others take too long: these are checked when they connect.
   * Rejects when none is.
   */
  async connect(): Promise<void> {
    const attempts = this.nodes.map((node) => node.connect());
    const all = Promise.allSettled(attempts);
    if (this.nodes.length > 1) {
      const { clock, operationTimeoutMs } = this.#host;
      const patience = new Promise<void>((resolve) => {
        const timer = clock.after(operationTimeoutMs * PATIENCE, resolve);
        timer.hold?.(true);
        all.then(
          () => timer.cancel(),
          () => {},
        );
      });
      await Promise.race([all, patience]);
    }
    await Promise.any(attempts).catch((error: AggregateError) => {
      throw error.errors[0];
    });
  }

  close(): void {
    for (const node of this.nodes) node.close();
  }

  async ping(): Promise<void> {
    await Promise.all(
      this.nodes.map((node) => repeatedIfLost(() => overNode(node, (connection) => connection.ping()))),
    );
  }

  answersInPart(): boolean {
    return this.nodes.length > 1 && this.nodes.some((node) => node.isAnswering());
  }

  isTransferring(): boolean {
    const now = this.#host.clock.now();
    return this.nodes.some(({ links }) =>
      links.some((link) => link.connection?.isTransferring(now) === true),
    );
  }

  now(): number {
    const now = this.#host.clock.now();
    return now + this.#behind(now);
  }

  clockErrorMs(): number {
    const now = this.#host.clock.coarse();
    return this.#ahead(now) - this.#behind(now);
  }

  aheadMs(): number {
    // The error grows by less than a millisecond in the time that the coarse clock may lag.
    return this.#ahead(this.#host.clock.coarse()) + 1;
  }

  /** Of all items on the servers, including those of other clients: memcached cannot tell them apart by prefix. */
  async usage(): Promise<Usage> {
    const answers = await Promise.allSettled(
      this.nodes.map((node) => overNode(node, (connection) => node.statistics(connection))),
    );
    const answered = answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const failed = answers.find((answer) => answer.status === "rejected");
    if (answered.length === 0 && failed !== undefined) throw failed.reason;
    const sum = (name: string): number =>
      answered.reduce((total, statistics) => total + Number(statistics.get(name) ?? 0), 0);
    return { keys: sum("curr_items"), bytes: sum("bytes"), approximate: true, scope: "server" };
  }

  memoryUsage(): Promise<number | undefined> {
    return highestUsage(this.nodes, async (node, connection: Connection) => {
      const statistics = await node.statistics(connection);
      return shareOf(Number(statistics.get("bytes")), Number(statistics.get("limit_maxbytes")));
    });
  }

  /** From what each server reported when it was connected. */
  makesRoom(): boolean {
    return this.nodes.every(({ info }) => info.evicts);
  }

  pool(): PoolState {
    return poolState(this.nodes);
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    await this.connect();
    const up = this.nodes.filter(({ links }) => links.some(({ connection }) => connection !== undefined));
    return {
      version: up[0]?.info.version ?? "unknown",
      servers: this.nodes.length,
      serversUp: up.length,
      largestRecordBytes: Math.min(...up.map(({ info }) => info.largestRecord)),
      evicts: up.every(({ info }) => info.evicts),
    };
  }

  locate(key: string): KeyLocation {
    return this.#nodeOf(key).locate(key);
  }

  /**
   * Whose time is the store's: the first of the list whose time is known, so that every process picks the same one. A server
   * that has been away for too long for that is skipped.
   */
  #reference(): MemcachedNode | undefined {
    const now = this.#host.clock.coarse();
    let first: MemcachedNode | undefined;
    for (const node of this.nodes) {
      if (node.time.askedAt === 0) continue;
      node.useTime();
      if (node.time.isKnown(now)) return node;
      first ??= node;
    }
    return first;
  }

  /** The least that the store's time can be ahead of ours; used as its offset, so that no record is written to expire late. */
  #behind(now: number): number {
    return this.#reference()?.time.low(now) ?? 0;
  }

  #ahead(now: number): number {
    return this.#reference()?.time.high(now) ?? 0;
  }

  #nodeOf(key: string): MemcachedNode {
    const { nodes } = this;
    if (nodes.length === 1) return nodes[0] as MemcachedNode;
    const anchored = key.includes("!") ? anchoredTo(key) : undefined;
    const noted = anchored === undefined ? undefined : nodes.find(({ name }) => name === anchored);
    return noted ?? (nodes[this.#ring.ownerOf(key)] as MemcachedNode);
  }

  /**
   * Reports the fingerprint of the list of servers as the run id. If the server last saw another list, that list may have
   * been in use meanwhile, and its invalidations did not reach this server: the core replaces the namespace's stamp.
   */
  async #onServer(node: MemcachedNode, connection: Connection): Promise<void> {
    const commands = new MemcachedCommands({
      locate: (key) => {
        const owner = this.#nodeOf(key);
        const source = owner === node ? sourceOf(connection) : owner.ahead;
        return { source, serverNow: () => owner.now() };
      },
    });
    const { clock } = this.#host;
    const now = (): number => (this.#reference() ?? node).now();
    await this.#host.onServer({
      anchor: anchorFor(node.name),
      runId: this.#ring.fingerprint.toString("hex"),
      // Later than any note: the server was never a replica of the one that the note names.
      startedAt: Number.POSITIVE_INFINITY,
      lastProvenAt: clock.now(),
      records: {
        now,
        read: (key) => commands.read(key),
        write: (item) => commands.write(item),
        take: (key) => commands.take(key),
      },
      owns: (key) => this.#nodeOf(key) === node,
    });
  }
}

function sourceOf(connection: Connection): ConnectionSource {
  return { connection, whenUp: (run) => run(connection) };
}

function overNode<T>({ links }: MemcachedNode, work: (connection: Connection) => Promise<T>): Promise<T> {
  return overConnection(links[0] as ConnectionSource, work);
}
