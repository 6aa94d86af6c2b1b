// The servers behind an address: what is read and written on them, and what they say of themselves.
import type { BackendHost, PoolState, ScanItem, Usage } from "../../core/backend.ts";
import { poolState } from "../wire/pool-state.ts";
import { type CommandSender, KvCommands } from "./commands/commands.ts";
import { memoryUsage } from "./commands/memory-usage.ts";
import type { Router } from "./commands/router.ts";
import { nodeUsage } from "./commands/scan.ts";
import type { KvAddress } from "./kv-address.ts";
import { openRouter } from "./open-router.ts";
import type { Connection } from "./server/connection.ts";
import type { KvNode } from "./server/node.ts";
import type { ServerInfo } from "./server/server-info.ts";

/** `key` has changed on a server; undefined: anything may have. */
export type Changed = (key: string | undefined) => void;

export class KvClient {
  readonly records: KvCommands;
  readonly #router: Router;
  readonly #host: BackendHost;
  #closed = false;

  constructor(address: KvAddress, host: BackendHost, changed: Changed) {
    this.#host = host;
    this.#router = openRouter(address, {
      host,
      met: (node, connection) => this.#met(node, connection),
      changed,
    });
    this.records = new KvCommands(this.#router, host);
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
    return now + (this.#offset(now, -1) + this.#offset(now, 1)) / 2;
  }

  clockErrorMs(): number {
    const now = this.#host.clock.coarse();
    return (this.#offset(now, 1) - this.#offset(now, -1)) / 2;
  }

  aheadMs(): number {
    // The error grows by less than a millisecond in the time that this clock may lag.
    return this.#offset(this.#host.clock.coarse(), 1) + 1;
  }

  /** Until when the pushes of all servers can be relied on. Each is asked: whoever is relied on is kept awake. */
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

  fill(): Promise<number | undefined> {
    return memoryUsage(this.#router.nodes);
  }

  /** By what each said when it was met. */
  makesRoom(): boolean {
    const nodes = this.#router.nodes;
    return nodes.every(({ facts }) => (facts.evictionPolicy ?? NO_EVICTION) !== NO_EVICTION);
  }

  pool(): PoolState {
    return poolState(this.#router.nodes.flatMap(({ links }) => links));
  }

  async describe(): Promise<Readonly<Record<string, string | number | boolean>>> {
    const nodes = await this.#router.masters();
    await nodes[0]?.connect();
    const facts = nodes[0]?.facts;
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
      // It has left the cluster meanwhile, and others have its slots: an estimate does without it.
      if (!node.isClosed || this.#closed) throw error;
      return { keys: 0, bytes: 0, approximate: true };
    }
  }

  /** The servers' time minus ours: the latest it may be on any of them, or the earliest with a `side` of -1. */
  #offset(now: number, side: 1 | -1): number {
    let furthest = Number.NEGATIVE_INFINITY;
    for (const { time } of this.#router.nodes) {
      if (time.setAt > 0) furthest = Math.max(furthest, time.offset * side + time.errorMs(now));
    }
    return furthest === Number.NEGATIVE_INFINITY ? 0 : furthest * side;
  }

  /** The server behind a new connection may have been restored from a snapshot, or have taken another one's place. */
  async #met(node: KvNode, connection: Connection): Promise<void> {
    const { runId, uptimeSeconds } = node.facts;
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

/** What concerns the server behind a connection that is not in use yet goes over that; the rest as always. */
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
