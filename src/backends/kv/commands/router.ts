// What sends a command to the server of its key: on a single server, behind sentinels or in a cluster.
import type { ScanItem, ScanPosition } from "../../../core/backend.ts";
import type { Clock } from "../../../core/clock.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Endpoint } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";

/** Deadlines of the calls. */
export interface CommandLimits {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
}

/** The router, or a connection that is still being prepared. */
export interface CommandSender {
  send(key: string, args: readonly Argument[], answer: Answer): void;
  /** GET; the reply is a span, copy what is kept. `isWatched`: see Backend.readThen. */
  read(key: string, isWatched: boolean, answer: Answer): void;
  /** MGET with one reply for all keys. Returns false, having sent nothing, if one command cannot read them all. */
  readMany?(keys: readonly string[], isWatched: boolean, answer: Answer): boolean;
}

/** A server that is used for one command. */
export interface Detour {
  readonly node: KvNode;
  /** Call it when the server is no longer needed. */
  leave(): void;
}

/** Follows keys when they move to another server. */
export interface Router extends CommandSender {
  /** Connects to every server. */
  connect(): Promise<void>;
  close(): void;
  /** See PushChannel.epoch. `isProven`: every connection is known to have answered within the last second. */
  epoch(key: string, isProven?: boolean): number;
  /** The masters known so far. */
  readonly nodes: readonly KvNode[];
  /** The masters, looked up first if none is known. */
  masters(): Promise<readonly KvNode[]>;
  /** Every record whose key starts with `prefix`, on all servers; see Backend.scan. */
  scan(
    prefix: string,
    signal: AbortSignal | undefined,
    position?: ScanPosition,
  ): AsyncIterable<readonly ScanItem[]>;
  /** Whether a key belongs to this node, which may still be preparing its connection. */
  isOn(key: string, node: KvNode): boolean;
  /**
   * Also reaches servers whose connections are still being prepared: two servers whose preparation needs each other's
   * keys would otherwise deadlock. What is read this way is not tracked. Absent where there is only one server.
   */
  readonly ahead?: CommandSender;
  /**
   * Learns from a MOVED or ASK of the server at `from`. Resolves to the server to ask after an ASK; to undefined once the
   * slot's master is known. Absent where there is only one server.
   */
  follow?(refusal: ReplyError, from: Endpoint): Promise<Detour | undefined>;
  /** A suffix that places a key of the store on this server. */
  anchor(node: KvNode): string;
  /** See ConnectedServer. */
  spareAnchor?(node: KvNode): string | undefined;
}

/** A server that has become a replica refuses writes: its connections are given up, which has the master looked up again. */
export function renewIfReplica(node: KvNode, refusal: unknown): void {
  if (refusal instanceof ReplyError && refusal.code === "READONLY")
    node.renew(new ConnectionError("the server has become a replica", { cause: refusal }));
}
