// Which server a key is on. Commands about a key go through a router, which follows the store when it moves.
import type { ScanItem } from "../../../core/backend.ts";
import type { KvNode } from "../server/node.ts";
import type { CommandSender } from "./commands.ts";

export interface Router extends CommandSender {
  /** Connects to every server. */
  connect(): Promise<void>;
  close(): void;
  /** See PushChannel.epoch. `isProven`: all connections are known to have answered within the last second. */
  epoch(key: string, isProven?: boolean): number;
  /** The servers that hold the keys, as far as they are known. */
  readonly nodes: readonly KvNode[];
  /** The same, looked up where they are not known yet. */
  masters(): Promise<readonly KvNode[]>;
  /** Every record whose key starts with `prefix`, wherever it is; see Backend.scan. */
  scan(prefix: string, signal: AbortSignal | undefined): AsyncIterable<readonly ScanItem[]>;
  /** Whether a key is on the server that a new connection leads to, which is not in use yet. */
  isOn(key: string, node: KvNode): boolean;
  /**
   * Reaches servers that are still being met, too: what the meeting of one server needs of another must not wait for the
   * other's. Nothing that was read so is told of. Absent where there is one server only.
   */
  readonly ahead?: CommandSender;
  /** Something that makes a key of the store be on this server, put at the end of its name. */
  anchor(node: KvNode): string;
}
