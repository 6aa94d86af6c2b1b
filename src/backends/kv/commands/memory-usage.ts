// How much of the memory that a server may take it has taken, by INFO.
import { highestUsage, shareOf } from "../../wire/fullest.ts";
import { ReplyError } from "../resp/reply.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { readServerInfo } from "../server/server-info.ts";

/** Of the fullest of those that are connected. */
export function memoryUsage(nodes: readonly KvNode[]): Promise<number | undefined> {
  return highestUsage(
    nodes.flatMap((node) => {
      const connection = node.links.find((link) => link.connection !== undefined)?.connection;
      return connection === undefined ? [] : [nodeFill(node, connection)];
    }),
  );
}

async function nodeFill({ facts }: KvNode, connection: Connection): Promise<number | undefined> {
  // A server that refused INFO when it was met would refuse it again, and write that down every time.
  if (facts.runId === undefined) return undefined;
  try {
    const { usedMemoryBytes, maxMemoryBytes } = readServerInfo(await connection.command("INFO", "memory"));
    return shareOf(usedMemoryBytes, maxMemoryBytes);
  } catch (error) {
    if (error instanceof ReplyError) return undefined;
    throw error;
  }
}
