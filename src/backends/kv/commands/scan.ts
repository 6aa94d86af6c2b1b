// Scans the keys of one server with SCAN, on a connection of its own.
import type { ScanItem, ScanPosition } from "../../../core/backend.ts";
import { CodecError, ConnectionError, unknownPosition } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { keyOfBytes } from "../../wire/key-bytes.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { toXCacheError } from "../resp/reply-error.ts";
import type { Argument } from "../resp/writer.ts";
import type { Connection } from "../server/connection.ts";
import { hasOtherData } from "../server/connection-error.ts";
import type { KvNode } from "../server/node.ts";
import { readHead } from "./record-head.ts";
import type { CommandSender } from "./router.ts";

/** Keys examined per SCAN step. */
export const SCAN_COUNT = "1000";
/** Keys read per pipeline: a larger batch takes more memory and is not faster. */
const BATCH = 250;
/** Approximate bytes that a key takes in the server besides its name and value. */
export const KEY_OVERHEAD = 64;

export interface Scan extends ScanPosition {
  readonly prefix: string;
  readonly signal: AbortSignal | undefined;
  /** Reads keys that have moved to another server meanwhile. */
  readonly elsewhere: CommandSender;
  /** Which keys to read. Default: all. */
  readonly wants?: (key: string) => boolean;
}

/**
 * Every record of a server whose key starts with the prefix, without payloads. Throws if the server was not the master in
 * use from the beginning to the end: then records may be missing.
 */
export async function* scanNode(node: KvNode, scan: Scan): AsyncIterable<readonly ScanItem[]> {
  if (scan.signal?.aborted) return;
  const { connection, history } = await node.separate.openProven().catch(fail);
  try {
    yield* scanOver(connection, scan);
    if (scan.signal?.aborted) return;
    const after = await node.separate.historyOn(connection).catch(fail);
    if (after !== history) throw hasOtherData(connection.name, " during the scan");
  } finally {
    connection.destroy(scanIsOver());
  }
}

export const scanIsOver = (): ConnectionError => new ConnectionError("the scan is over");

/** As scanNode, over a connection that nothing else uses meanwhile. */
export async function* scanOver(connection: Connection, scan: Scan): AsyncIterable<readonly ScanItem[]> {
  let cursor = scan.from ?? "0";
  if (!/^\d{1,20}$/.test(cursor)) throw unknownPosition(cursor);
  do {
    if (scan.signal?.aborted) return;
    const step = await scanStep(connection, cursor, scan.prefix);
    cursor = step.cursor;
    if (cursor !== "0") scan.at?.(cursor);
    yield await recordsOf(connection, step.keys, scan);
  } while (cursor !== "0");
}

interface Step {
  readonly cursor: string;
  readonly keys: readonly Buffer[];
}

async function scanStep(connection: Connection, cursor: string, prefix: string): Promise<Step> {
  const pattern = `${escaped(prefix)}*`;
  const scanning = connection.command("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT);
  const reply = (await scanning.catch(fail)) as readonly Reply[];
  return { cursor: String(reply[0]), keys: reply[1] as readonly Buffer[] };
}

async function recordsOf(
  connection: Connection,
  keys: readonly Buffer[],
  { elsewhere, wants }: Scan,
): Promise<readonly ScanItem[]> {
  const items: ScanItem[] = [];
  for (let at = 0; at < keys.length; at += BATCH) {
    const found = keys.slice(at, at + BATCH).map((bytes) => new FoundKey(bytes, connection, elsewhere));
    const wanted = wants === undefined ? found : found.filter(({ key }) => wants(key));
    for (const item of await Promise.all(wanted.map((each) => each.item()))) {
      if (item !== undefined) items.push(item);
    }
  }
  return items;
}

/** A key returned by SCAN, and its record. */
class FoundKey {
  readonly key: string;
  readonly #bytes: Buffer;
  readonly #connection: Connection;
  readonly #elsewhere: CommandSender;

  constructor(bytes: Buffer, connection: Connection, elsewhere: CommandSender) {
    this.key = keyOfBytes(bytes);
    this.#bytes = bytes;
    this.#connection = connection;
    this.#elsewhere = elsewhere;
  }

  /** Undefined if the key is gone by now or is not a record of ours. */
  async item(): Promise<ScanItem | undefined> {
    try {
      const found = await readHead((args) => this.#command(args), this.key, 0, this.#bytes);
      if (found === undefined) return undefined;
      const bytes = found.total + this.#bytes.length + KEY_OVERHEAD;
      return { key: this.key, record: found.head.record, bytes };
    } catch (error) {
      // Another application may write under the prefix.
      if (error instanceof CodecError) return undefined;
      throw error;
    }
  }

  /** Null if the key is not a string. One promise each, as a step sends thousands of these. */
  #command(args: readonly Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refused = (error: Error): void => void this.#refused(error, args).then(resolve, reject);
      this.#connection.send(args, { resolve, reject: refused });
    });
  }

  /** Every other failure is thrown: swallowed, it would look like a key that is gone. */
  async #refused(error: Error, args: readonly Argument[]): Promise<Reply> {
    try {
      if (!isReply(error, "MOVED", "ASK")) throw error;
      return await new Promise((resolve, reject) =>
        this.#elsewhere.send(this.key, args, { resolve, reject }),
      );
    } catch (thrown) {
      if (isReply(thrown, "WRONGTYPE")) return null;
      return fail(thrown);
    }
  }
}

const isReply = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof ReplyError && codes.includes(error.code);

/** Error replies leave the backend as an XCacheError. */
export function fail(error: unknown): never {
  throw toXCacheError(toError(error));
}

/** The prefix as a glob that matches only itself. */
function escaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]^]/g, "\\$&");
}
