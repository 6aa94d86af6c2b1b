// The connections of a store: which one carries the commands for a key, and their state and memory usage over all servers.
import type { PoolState } from "../../core/backend.ts";
import { ConnectionError } from "../../core/errors.ts";

interface PooledNode<C> {
  readonly links: readonly {
    /** How many calls wait for the connection to be opened. */
    readonly waiting: number;
    readonly connection?: C | undefined;
  }[];
}

interface PooledConnection {
  readonly inFlight: number;
  readonly isClogged: boolean;
}

export function poolState(nodes: readonly PooledNode<PooledConnection>[]): PoolState {
  const links = nodes.flatMap((node) => node.links);
  const inUse = links.filter(({ connection }) => (connection?.inFlight ?? 0) > 0).length;
  const waiting = links.reduce((sum, link) => sum + link.waiting, 0);
  const full = links.filter((link) => link.waiting > 0 || link.connection?.isClogged === true).length;
  return { size: links.length, inUse, idle: links.length - inUse, waiting, full };
}

/**
 * The memory usage of the fullest connected server, whose keys are the first to be evicted or refused; undefined if no
 * server reports one. Rejects if no server is connected or none answers.
 */
export async function highestUsage<C, N extends PooledNode<C>>(
  nodes: readonly N[],
  usageOf: (node: N, connection: C) => Promise<number | undefined>,
): Promise<number | undefined> {
  const asked = nodes.flatMap((node) => {
    const connection = node.links.find((link) => link.connection !== undefined)?.connection;
    return connection === undefined ? [] : [usageOf(node, connection)];
  });
  if (asked.length === 0) {
    throw new ConnectionError("the store is not connected", { code: "DISCONNECTED" });
  }
  const answers = await Promise.allSettled(asked);
  const usages = answers.filter((answer) => answer.status === "fulfilled").map(({ value }) => value);
  if (usages.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
  const known = usages.filter((usage) => usage !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** A share of a limit, 0 to 1; undefined where there is no limit or either is not reported. */
export function shareOf(used: number, limit: number): number | undefined {
  return used >= 0 && limit > 0 ? Math.min(1, used / limit) : undefined;
}

/** Which of a server's connections carries the commands for a key. Stamps share the first one, so that every process sees them change in the same order. */
export const connectionOf = (key: string, connections: number): number =>
  connections === 1 || isOwnRecord(key) ? 0 : spread(key) % connections;

/** Whether a key is one of the library's own records; see `spelling` in core/keys.ts. */
function isOwnRecord(key: string): boolean {
  const mark = key.indexOf("!");
  return mark >= 0 && !key.slice(0, mark).includes(":");
}

/** Any even distribution will do. */
function spread(key: string): number {
  let hash = key.length;
  for (let at = Math.max(0, key.length - 8); at < key.length; at++)
    hash = (hash * 31 + key.charCodeAt(at)) >>> 0;
  return hash;
}
