// Memory usage of the servers (INFO memory) and of the keys under a prefix (a sample of them).
import type { Usage } from "../../../core/backend.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { EXPIRY_END, isEndedLease } from "../../../core/frame/frame.ts";
import { highestUsage, shareOf } from "../../wire/pool.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import { readServerInfo } from "../server/server-info.ts";
import { KEY_OVERHEAD, SCAN_COUNT } from "./scan.ts";

/** The highest share of maxmemory in use on any connected server; undefined where none has a limit. */
export function memoryUsage(nodes: readonly KvNode[]): Promise<number | undefined> {
  return highestUsage(nodes, nodeMemoryUsage);
}

async function nodeMemoryUsage({ info }: KvNode, connection: Connection): Promise<number | undefined> {
  // A server that refused INFO on connect would refuse it again and log the refusal every time.
  if (info.runId === undefined) return undefined;
  try {
    const { usedMemoryBytes, maxMemoryBytes } = readServerInfo(await connection.command("INFO", "memory"));
    return shareOf(usedMemoryBytes, maxMemoryBytes);
  } catch (error) {
    if (error instanceof ReplyError) return undefined;
    throw error;
  }
}

const SAMPLE_MS = 50;
const LAST_OF_HEAD = String(EXPIRY_END - 1);
const SIZED_KEYS = 100;

/** Memory of the keys under `prefix`: all keys are counted on a small server, else a sample is extrapolated. */
export async function nodeUsage(node: KvNode, prefix: string, now: () => number): Promise<Usage> {
  const connection = await node.separate.open();
  try {
    const total = Number(await connection.command("DBSIZE"));
    const wanted = Buffer.from(prefix);
    const until = now() + SAMPLE_MS;
    let cursor = "0";
    let examined = 0;
    let found = 0;
    const sample: Buffer[] = [];
    do {
      const reply = (await connection.command("SCAN", cursor, "COUNT", SCAN_COUNT)) as readonly Reply[];
      cursor = String(reply[0]);
      for (const key of reply[1] as readonly Buffer[]) {
        examined++;
        if (key.length < wanted.length || key.compare(wanted, 0, wanted.length, 0, wanted.length) !== 0)
          continue;
        found++;
        if (sample.length < SIZED_KEYS) sample.push(Buffer.from(key));
      }
    } while (cursor !== "0" && now() < until);
    const complete = cursor === "0";
    const estimate = complete || examined === 0 ? found : Math.round((found / examined) * total);
    const [sizes, heads] = await Promise.all([
      Promise.all(sample.map((key) => connection.command("STRLEN", key).then(Number, noneIfRefused))),
      Promise.all(
        sample.map((key) => connection.command("GETRANGE", key, "0", LAST_OF_HEAD).catch(noneIfRefused)),
      ),
    ]);
    // Records of loads that ended without a value hold nothing.
    const ended = heads.filter((head) => head instanceof Uint8Array && isEndedLease(head)).length;
    const keys = Math.round(estimate * (1 - ended / Math.max(1, sample.length)));
    const sampled = sizes.reduce(
      (sum, size, at) => sum + size + (sample[at] as Buffer).length + KEY_OVERHEAD,
      0,
    );
    const bytes = sample.length === 0 ? 0 : Math.round((sampled / sample.length) * keys);
    return { keys, bytes, approximate: true };
  } finally {
    connection.destroy(new ConnectionError("the usage sample is complete"));
  }
}

/** The key is not a string or has moved: the estimate can do without it. */
function noneIfRefused(error: unknown): number {
  if (error instanceof ReplyError) return 0;
  throw error;
}
