// Compare-and-swap for servers without scripts: WATCH and MULTI, one swap at a time on a connection of its own.
import type { SwapResult } from "../../../core/backend.ts";
import { ConnectionError, OperationTimeoutError } from "../../../core/errors.ts";
import { VERSION_OFFSET } from "../../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { type CommandLimits, type Detour, type Router, renewIfReplica } from "./router.ts";

const VERSION_LENGTH = 8;

export interface WatchedSwap {
  readonly key: string;
  readonly expected: Token | undefined;
  /** Replaces the record, or removes it. */
  readonly change: readonly Argument[];
  recordOf(reply: Reply): StoreRecord | undefined;
}

/** Redirections followed without a pause, and the pauses after that. */
const QUICK_HOPS = 2;
const PAUSE_MS = 20;

type SwapRouter = Pick<Router, "masters" | "isOn" | "follow">;

/** The server does not have the key's slot, or no longer the key. */
interface Redirected {
  readonly refusal: ReplyError;
  /** Where it came from. */
  readonly connection: Connection;
}

export class WatchedSwaps {
  readonly #router: SwapRouter;
  readonly #limits: CommandLimits;
  readonly #connections = new Map<KvNode, Connection>();
  /** The end of the latest swap of each server: what is watched belongs to the connection. */
  readonly #turns = new Map<KvNode, Promise<unknown>>();

  constructor(router: SwapRouter, limits: CommandLimits) {
    this.#router = router;
    this.#limits = limits;
  }

  async swap(swap: WatchedSwap): Promise<SwapResult> {
    const { clock, operationTimeoutMs } = this.#limits;
    const due = clock.now() + operationTimeoutMs;
    let detour: Detour | undefined;
    for (let hops = 0; ; hops++) {
      const outcome: SwapResult | Redirected =
        detour === undefined ? await this.#onMaster(swap, due) : await this.#onDetour(detour, swap, due);
      if (!("refusal" in outcome)) return outcome;
      const { refusal, connection } = outcome;
      if (hops >= QUICK_HOPS) await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
      if (this.#router.follow === undefined || clock.now() >= due) throw refusal;
      detour = await this.#router.follow(refusal, connection.endpoint);
    }
  }

  async #onMaster(swap: WatchedSwap, due: number): Promise<SwapResult | Redirected> {
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

  async #inTurn(node: KvNode, swap: WatchedSwap, due: number): Promise<SwapResult | Redirected> {
    const connection = await this.#connectionTo(node);
    try {
      return await this.#attempts(connection, swap, due, false);
    } catch (error) {
      renewIfReplica(node, error);
      throw error;
    }
  }

  /** On a server that imports the slot; nothing else uses the connection. */
  async #onDetour({ node, leave }: Detour, swap: WatchedSwap, due: number): Promise<SwapResult | Redirected> {
    let connection: Connection | undefined;
    try {
      connection = await node.separate.open();
      return await this.#attempts(connection, swap, due, true);
    } finally {
      connection?.destroy(new ConnectionError("the swap is over"));
      leave();
    }
  }

  async #attempts(
    connection: Connection,
    swap: WatchedSwap,
    due: number,
    isAsking: boolean,
  ): Promise<SwapResult | Redirected> {
    try {
      while (this.#limits.clock.now() < due) {
        const result = await attempt(connection, swap, isAsking);
        if (result !== undefined) return result;
      }
    } catch (error) {
      if (!(error instanceof ReplyError) || (error.code !== "MOVED" && error.code !== "ASK")) throw error;
      await connection.command("UNWATCH");
      return { refusal: error, connection };
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

/**
 * Undefined: the record changed in between. `isAsking`: the server only imports the slot. ASKING applies to one command, and
 * before MULTI to the whole transaction.
 */
async function attempt(
  connection: Connection,
  swap: WatchedSwap,
  isAsking: boolean,
): Promise<SwapResult | undefined> {
  const { key, expected, change, recordOf } = swap;
  const asking = (): Promise<Reply>[] => (isAsking ? [connection.command("ASKING")] : []);
  const reading = [
    ...asking(),
    connection.command("WATCH", key),
    ...asking(),
    connection.command("GET", key),
  ];
  const found = (await allOf(reading)).at(-1) as Reply;
  if (versionIn(found) !== (expected ?? "")) {
    await connection.command("UNWATCH");
    return { won: false, current: recordOf(found) };
  }
  const [replies] = (await allOf([...asking(), connection.transact(change)])).slice(-1);
  if (replies === null) return undefined;
  const [reply] = replies as readonly Reply[];
  if (reply instanceof ReplyError) throw reply;
  return { won: true };
}

/** Rejects with the first refusal, when all have been answered. */
async function allOf(commands: readonly Promise<Reply>[]): Promise<readonly Reply[]> {
  const answers = await Promise.allSettled(commands);
  return answers.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}

const versionIn = (record: Reply): string =>
  Buffer.isBuffer(record) ? record.toString("latin1", VERSION_OFFSET, VERSION_OFFSET + VERSION_LENGTH) : "";
