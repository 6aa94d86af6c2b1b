// The client of a Redis or Valkey store: commands, clock, usage and failover detection over all its servers.
import type { BackendHost, PoolState, ScanItem, Usage } from "../../core/backend.ts";
import { poolState } from "../wire/pool-state.ts";
import { KvCommands } from "./commands/commands.ts";
import { memoryUsage, nodeUsage } from "./commands/memory-usage.ts";
import type { CommandSender, Router } from "./commands/router.ts";
import { type KvAddress, openRouter } from "./open-router.ts";
import type { Connection } from "./server/connection.ts";
import type { KvNode } from "./server/node.ts";
import type { ServerInfo } from "./server/server-info.ts";

/** A server reported a change of `key`; undefined: any key may have changed. */
export type Changed = (key: string | undefined) => void;

export class KvClient {
  readonly commands: KvCommands;
  readonly #router: Router;
  readonly #host: BackendHost;
  /** The servers' time minus ours, as last estimated. */
  #earliest = 0;
  #latest = 0;
  #closed = false;

  constructor(address: KvAddress, host: BackendHost, changed: Changed) {
    this.#host = host;
    this.#router = openRouter(address, {
      host,
      onServer: (node, connection) => this.#onServer(node, connection),
      changed,
    });
    this.commands = new KvCommands(this.#router, host);
  }

  connect(): Promise<void> {
    return this.#router.connect();
  }

  close(): void {
    this.#closed = true;
    this.#router.close();
  }

  async ping(): Promise<void> {
    const nodes = await this.#router.masters();
    await Promise.all(nodes.map((node) => node.links[0]?.command("PING")));
  }

  answersInPart(): boolean {
    const nodes = this.#router.nodes;
    const { clock, operationTimeoutMs } = this.#host;
    const now = clock.now();
    return nodes.length > 1 && nodes.some((node) => node.isAnswering(now, operationTimeoutMs));
  }

  now(): number {
    const now = this.#host.clock.now();
    this.#estimate(now);
    return now + (this.#earliest + this.#latest) / 2;
  }

  clockErrorMs(): number {
    this.#estimate(this.#host.clock.coarse());
    return (this.#latest - this.#earliest) / 2;
  }

  aheadMs(): number {
    this.#estimate(this.#host.clock.coarse());
    // The error grows by less than a millisecond in the time that the coarse clock may lag.
    return this.#latest + 1;
  }

  /** Until when the pushes of all servers can be trusted. Asks every node: asking keeps its heartbeat running. */
  trustedUntil(): number {
    const { nodes } = this.#router;
    return nodes.length === 0 ? 0 : Math.min(...nodes.map((node) => node.trustedUntil()));
  }

  epoch(key: string, isProven: boolean): number {
    return this.#router.epoch(key, isProven);
  }

  scan(prefix: string, signal: AbortSignal | undefined): AsyncIterable<readonly ScanItem[]> {
    return this.#router.scan(prefix, signal);
  }

  async usage(prefix: string): Promise<Usage> {
    const nodes = await this.#router.masters();
    const parts = await Promise.all(nodes.map((node) => this.#usageOf(node, prefix)));
    return parts.reduce((sum, part) => ({
      keys: sum.keys + part.keys,
      bytes: sum.bytes + part.bytes,
      approximate: true,
    }));
  }

  memoryUsage(): Promise<number | undefined> {
    return memoryUsage(this.#router.nodes);
  }

  /** From what each server reported when it was connected. */
  makesRoom(): boolean {
    const nodes = this.#router.nodes;
    return nodes.every(({ info }) => (info.evictionPolicy ?? NO_EVICTION) !== NO_EVICTION);
  }

  pool(): PoolState {
    return poolState(this.#router.nodes);
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    const nodes = await this.#router.masters();
    await nodes[0]?.connect();
    const facts = nodes[0]?.info;
    return {
      server: facts?.kind ?? "unknown",
      version: facts?.version ?? "unknown",
      masters: nodes.length,
      tracking: nodes.every((node) => node.tracks),
      ...(facts?.evictionPolicy === undefined ? {} : memoryFacts(facts)),
    };
  }

  async #usageOf(node: KvNode, prefix: string): Promise<Usage> {
    try {
      return await nodeUsage(node, prefix, this.#host.clock.now);
    } catch (error) {
      // The server left the cluster meanwhile and others have its slots: the estimate can do without it.
      if (!node.isClosed || this.#closed) throw error;
      return { keys: 0, bytes: 0, approximate: true };
    }
  }

  /** Bounds the servers' time minus ours: the earliest and the latest it may be on any of them. */
  #estimate(now: number): void {
    const { nodes } = this.#router;
    let earliest = Number.POSITIVE_INFINITY;
    let latest = Number.NEGATIVE_INFINITY;
    for (let at = 0; at < nodes.length; at++) {
      const { time } = nodes[at] as KvNode;
      if (time.setAt === 0) continue;
      const errorMs = time.errorMs(now);
      earliest = Math.min(earliest, time.offset - errorMs);
      latest = Math.max(latest, time.offset + errorMs);
    }
    const isKnown = latest !== Number.NEGATIVE_INFINITY;
    this.#earliest = isKnown ? earliest : 0;
    this.#latest = isKnown ? latest : 0;
  }

  /** The server behind a new connection may have been restored from a snapshot or have taken over from another. */
  async #onServer(node: KvNode, connection: Connection): Promise<void> {
    const { runId, uptimeSeconds } = node.info;
    const router = this.#router;
    if (runId === undefined) return;
    const records = new KvCommands(throughConnection(connection, node, router), this.#host);
    const now = (): number => this.now();
    await this.#host.onServer({
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

function memoryFacts({ evictionPolicy = "", maxMemoryBytes, usedMemoryBytes }: ServerInfo) {
  return { evictionPolicy, maxMemoryBytes, usedMemoryBytes };
}

/** Commands for the node go over its connection, which is still being prepared; all others through the router. */
function throughConnection(connection: Connection, node: KvNode, router: Router): CommandSender {
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
