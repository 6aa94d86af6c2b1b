// The client of a Redis or Valkey store: commands, clock, usage and failover detection over all its servers.
import type {
  BackendHost,
  PoolState,
  Restriction,
  ScanItem,
  ScanPosition,
  Usage,
} from "../../core/backend.ts";
import { redactText } from "../../core/redact.ts";
import { repeatedIfLost } from "../wire/connection-error.ts";
import { poolState } from "../wire/pool.ts";
import { KvCommands } from "./commands/commands.ts";
import { memoryUsage, nodeUsage } from "./commands/memory-usage.ts";
import type { CommandLimits, CommandSender, Router } from "./commands/router.ts";
import { WatchedSwaps } from "./commands/watched-swaps.ts";
import { type KvAddress, openRouter, type SeveralServers } from "./open-router.ts";
import { type Reply, ReplyError } from "./resp/reply.ts";
import type { Answer, Connection } from "./server/connection.ts";
import type { LoginOptions } from "./server/login.ts";
import type { KvNode } from "./server/node.ts";
import { isForbidden, Restrictions } from "./server/restrictions.ts";
import type { ClockReading } from "./server/server-clock.ts";
import type { ServerInfo } from "./server/server-info.ts";

/** A server reported a change of `key`; undefined: any key may have changed. */
export type Changed = (key: string | undefined) => void;

export class KvClient {
  readonly commands: KvCommands;
  readonly #router: Router;
  readonly #host: BackendHost;
  readonly #restrictions: Restrictions;
  /** The servers' time minus ours, as last estimated. */
  #earliest = 0;
  #latest = 0;
  #closed = false;

  constructor(
    address: KvAddress,
    login: LoginOptions,
    host: BackendHost,
    changed: Changed,
    several?: SeveralServers,
  ) {
    this.#host = host;
    this.#restrictions = new Restrictions(host.report);
    this.#router = openRouter(address, login, {
      host,
      several,
      restrictions: this.#restrictions,
      onServer: (node, connection, setBack) => this.#onServer(node, connection, setBack),
      changed,
    });
    const swaps = new WatchedSwaps(this.#router, host);
    this.commands = new KvCommands(this.#router, host, this.#restrictions, swaps);
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
    const ping = (node: KvNode): Promise<unknown> | undefined => node.links[0]?.command("PING");
    await Promise.all(nodes.map((node) => repeatedIfLost(() => Promise.resolve(ping(node)))));
  }

  /** Also tries to write, without changing anything. */
  async restrictions(key: string): Promise<readonly Restriction[]> {
    const nodes = await this.#router.masters();
    const refused = await Promise.all(
      nodes.map((node) => repeatedIfLost(() => this.#refusalOfWrites(node, key))),
    );
    const cause = refused.find((error) => error !== undefined);
    const found = this.#restrictions.list();
    if (cause === undefined) return found;
    const detail = `the store refuses to write: ${redactText(cause.message)}`;
    return [{ name: "SET", detail, blocksWrites: true }, ...found];
  }

  answersInPart(): boolean {
    const nodes = this.#router.nodes;
    const { clock, operationTimeoutMs } = this.#host;
    const now = clock.now();
    return nodes.length > 1 && nodes.some((node) => node.isAnswering(now, operationTimeoutMs));
  }

  isTransferring(): boolean {
    const now = this.#host.clock.now();
    return this.#router.nodes.some((node) => node.isTransferring(now));
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
    let until = nodes.length === 0 ? 0 : Number.POSITIVE_INFINITY;
    for (const node of nodes) until = Math.min(until, node.trustedUntil());
    return until;
  }

  epoch(key: string, isProven: boolean): number {
    return this.#router.epoch(key, isProven);
  }

  scan(
    prefix: string,
    signal: AbortSignal | undefined,
    position?: ScanPosition,
  ): AsyncIterable<readonly ScanItem[]> {
    return this.#router.scan(prefix, signal, position);
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

  async #refusalOfWrites(node: KvNode, key: string): Promise<ReplyError | undefined> {
    try {
      const probe = key + this.#router.anchor(node);
      await node.links[0]?.command("SET", probe, "", "XX");
      if (this.#restrictions.has("EVAL")) await this.#tryWatch(node, probe);
    } catch (error) {
      // The slot has moved: another server answers for it.
      if (error instanceof ReplyError) return ELSEWHERE.has(error.code) ? undefined : error;
      throw error;
    }
    return undefined;
  }

  async #tryWatch(node: KvNode, key: string): Promise<void> {
    try {
      await node.links[0]?.command("WATCH", key);
      await node.links[0]?.command("UNWATCH");
      this.#restrictions.remove("WATCH");
    } catch (error) {
      if (isForbidden(error)) this.#restrictions.add("WATCH", error);
      throw error;
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
  async #onServer(node: KvNode, connection: Connection, setBack?: ClockReading): Promise<void> {
    const { runId, uptimeSeconds, history } = node.info;
    const router = this.#router;
    if (runId === undefined) return;
    const sender = throughConnection(connection, node, router, this.#host);
    const records = new KvCommands(sender, this.#host, this.#restrictions);
    const now = (): number => (setBack === undefined ? this.now() : this.#host.clock.now() + setBack.offset);
    await this.#host.onServer({
      anchor: router.anchor(node),
      spareAnchor: router.spareAnchor?.(node),
      runId,
      history,
      startedAt: now() - uptimeSeconds * 1_000,
      lastProvenAt: node.lastProvenAt,
      ...(setBack !== undefined && { setBackFrom: node.time.reported }),
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

/**
 * Commands for the node go over its connection, which is still being prepared; all others through the router, and so does
 * what the node redirects: the slot of its own records may be migrating.
 */
function throughConnection(
  connection: Connection,
  node: KvNode,
  router: Router,
  limits: CommandLimits,
): CommandSender {
  const elsewhere = router.ahead ?? router;
  const following = (answer: Answer, again: (answer: Answer) => void): Answer =>
    router.ahead === undefined ? answer : new RedirectedAnswer(answer, limits, again);
  return {
    send: (key, args, answer) => {
      if (!router.isOn(key, node)) elsewhere.send(key, args, answer);
      else
        connection.send(
          args,
          following(answer, (again) => elsewhere.send(key, args, again)),
        );
    },
    read: (key, isWatched, answer) => {
      if (!router.isOn(key, node)) elsewhere.read(key, isWatched, answer);
      else
        connection.read(
          key,
          isWatched,
          following(answer, (again) => elsewhere.read(key, isWatched, again)),
        );
    },
  };
}

/** The replies of a cluster server that does not execute a command because of where its slot is. */
const ELSEWHERE = new Set(["MOVED", "ASK", "TRYAGAIN"]);

/** Sends the command again if the server redirects it, within the same deadline. */
class RedirectedAnswer implements Answer {
  readonly due: number;
  readonly #answer: Answer;
  readonly #again: (answer: Answer) => void;

  constructor(answer: Answer, { clock, operationTimeoutMs }: CommandLimits, again: (answer: Answer) => void) {
    this.due = answer.due ?? clock.now() + operationTimeoutMs;
    this.#answer = answer;
    this.#again = again;
  }

  resolve(reply: Reply): unknown {
    return this.#answer.resolve(reply);
  }

  reject(error: Error): void {
    if (!(error instanceof ReplyError) || !ELSEWHERE.has(error.code)) {
      this.#answer.reject(error);
      return;
    }
    const { due } = this;
    this.#again({
      due,
      resolve: (reply) => this.#answer.resolve(reply),
      reject: (failure) => this.#answer.reject(failure),
    });
  }
}
