// Compare-and-swap for servers without scripts: WATCH and MULTI, one swap at a time on a connection of its own.
import type { SwapResult } from "../../../core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { VERSION_OFFSET } from "../../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { type CommandLimits, type Router, renewIfReplica } from "./router.ts";

const VERSION_LENGTH = 8;

export interface WatchedSwap {
  readonly key: string;
  readonly expected: Token | undefined;
  /** Replaces the record, or removes it. */
  readonly change: readonly Argument[];
  recordOf(reply: Reply): StoreRecord | undefined;
}

export class WatchedSwaps {
  readonly #router: Pick<Router, "masters" | "isOn">;
  readonly #limits: CommandLimits;
  readonly #connections = new Map<KvNode, Connection>();
  /** The end of the latest swap of each server: what is watched belongs to the connection. */
  readonly #turns = new Map<KvNode, Promise<unknown>>();

  constructor(router: Pick<Router, "masters" | "isOn">, limits: CommandLimits) {
    this.#router = router;
    this.#limits = limits;
  }

  async swap(swap: WatchedSwap): Promise<SwapResult> {
    const { clock, operationTimeoutMs } = this.#limits;
    const due = clock.now() + operationTimeoutMs;
    const node = (await this.#router.masters()).find((each) => this.#router.isOn(swap.key, each));
    if (node === undefined) throw new ConnectionError("no server of the cluster has the slot of the key");
    const turn = (this.#turns.get(node) ?? Promise.resolve()).then(() => this.#inTurn(node, swap, due));
    const over = turn.catch(() => {});
    this.#turns.set(node, over);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(node) === over) this.#turns.delete(node);
    }
  }

  async #inTurn(node: KvNode, swap: WatchedSwap, due: number): Promise<SwapResult> {
    const connection = await this.#connectionTo(node);
    try {
      while (this.#limits.clock.now() < due) {
        const result = await attempt(connection, swap);
        if (result !== undefined) return result;
      }
    } catch (error) {
      renewIfReplica(node, error);
      throw error;
    }
    throw new OperationTimeoutError("the record kept changing while it was to be replaced");
  }

  async #connectionTo(node: KvNode): Promise<Connection> {
    const known = this.#connections.get(node);
    if (known?.isOpen === true) return known;
    this.#connections.delete(node);
    // Also gives up a node that has left the cluster, with the connection it had.
    for (const [other, { isOpen }] of this.#connections) if (!isOpen) this.#connections.delete(other);
    // What it read from another server may have been invalidated on the one in use.
    const { connection } = await node.separate.openProven();
    this.#connections.set(node, connection);
    return connection;
  }
}

/** Undefined: the record changed in between. */
async function attempt(connection: Connection, swap: WatchedSwap): Promise<SwapResult | undefined> {
  const { key, expected, change, recordOf } = swap;
  const [, found] = await Promise.all([connection.command("WATCH", key), connection.command("GET", key)]);
  if (versionIn(found) !== (expected ?? "")) {
    await connection.command("UNWATCH");
    return { won: false, current: recordOf(found) };
  }
  const replies = await connection.transact(change);
  if (replies === null) return undefined;
  const [reply] = replies as readonly Reply[];
  if (reply instanceof ReplyError) throw reply;
  return { won: true };
}

const versionIn = (record: Reply): string =>
  Buffer.isBuffer(record) ? record.toString("latin1", VERSION_OFFSET, VERSION_OFFSET + VERSION_LENGTH) : "";
