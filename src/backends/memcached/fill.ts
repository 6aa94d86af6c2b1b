// How much of its memory a server has filled with items, by `stats`.
import { highestUsage, shareOf } from "../wire/fullest.ts";
import type { Connection } from "./connection.ts";
import type { MemcachedNode } from "./node.ts";

/** Of the fullest of those that are connected. */
export function memoryUsage(nodes: readonly MemcachedNode[]): Promise<number | undefined> {
  return highestUsage(
    nodes.flatMap((node) => {
      const connection = node.links.find((link) => link.connection !== undefined)?.connection;
      return connection === undefined ? [] : [nodeFill(node, connection)];
    }),
  );
}

async function nodeFill(node: MemcachedNode, connection: Connection): Promise<number | undefined> {
  const statistics = await node.statistics(connection);
  return shareOf(Number(statistics.get("bytes")), Number(statistics.get("limit_maxbytes")));
}
