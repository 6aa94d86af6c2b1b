// Looks through the keys of one server with a cursor, on a connection of its own.
import type { ScanItem, Usage } from "../../core/backend.ts";
import { ConnectionError } from "../../core/errors.ts";
import { decodeHeader, decodeRecord, INCOMPLETE } from "../../core/frame.ts";
import type { StoreRecord } from "../../core/record.ts";
import { keyOfBytes } from "../key-bytes.ts";
import type { Connection } from "./connection.ts";
import type { KvNode } from "./node.ts";
import type { Reply } from "./reply.ts";

/** Keys a step of the cursor looks at. */
const STEP = "1000";
/** Enough for the header of nearly every entry. */
const HEADER_BYTES = 255;
/** What a key takes in the server besides its name and value, about. */
const KEY_OVERHEAD = 64;

/** Every record whose key starts with `prefix`; payloads are left out. */
export async function* scanNode(
  node: KvNode,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly ScanItem[]> {
  const connection = await node.aside();
  try {
    let cursor = "0";
    do {
      if (signal?.aborted) return;
      const step = await scanStep(connection, cursor, prefix);
      cursor = step.cursor;
      yield await recordsOf(connection, step.keys);
    } while (cursor !== "0");
  } finally {
    connection.destroy(new ConnectionError("the scan is over"));
  }
}

interface Step {
  readonly cursor: string;
  readonly keys: readonly Buffer[];
}

async function scanStep(connection: Connection, cursor: string, prefix: string): Promise<Step> {
  const reply = (await connection.command(
    "SCAN",
    cursor,
    "MATCH",
    `${escaped(prefix)}*`,
    "COUNT",
    STEP,
  )) as readonly Reply[];
  return { cursor: String(reply[0]), keys: reply[1] as readonly Buffer[] };
}

async function recordsOf(connection: Connection, keys: readonly Buffer[]): Promise<readonly ScanItem[]> {
  const items = await Promise.all(keys.map((key) => itemOf(connection, key)));
  return items.filter((item) => item !== undefined);
}

async function itemOf(connection: Connection, bytes: Buffer): Promise<ScanItem | undefined> {
  const [head, length] = await Promise.all([
    connection.command("GETRANGE", bytes, "0", String(HEADER_BYTES)).catch(() => null),
    connection.command("STRLEN", bytes).catch(() => 0),
  ]);
  // Gone meanwhile, or not a string: none of ours.
  if (!Buffer.isBuffer(head) || head.length === 0) return undefined;
  const key = keyOfBytes(bytes);
  const record = await headerOf(connection, bytes, head, key);
  return record === undefined
    ? undefined
    : { key, record, bytes: Number(length) + bytes.length + KEY_OVERHEAD };
}

async function headerOf(
  connection: Connection,
  bytes: Buffer,
  head: Buffer,
  key: string,
): Promise<StoreRecord | undefined> {
  try {
    const record = decodeHeader(head, key);
    if (record !== INCOMPLETE) return record;
    const whole = await connection.command("GET", bytes);
    return Buffer.isBuffer(whole) ? decodeRecord(whole, key) : undefined;
  } catch {
    return undefined;
  }
}

/** How many keys are looked at for an estimate, and for how long. */
const SAMPLE_MS = 50;
const SIZED_KEYS = 100;

/** How much the keys under `prefix` take: of all of them on a small server, else estimated from a sample. */
export async function nodeUsage(node: KvNode, prefix: string, now: () => number): Promise<Usage> {
  const connection = await node.aside();
  try {
    const total = Number(await connection.command("DBSIZE"));
    const wanted = Buffer.from(prefix);
    const until = now() + SAMPLE_MS;
    let cursor = "0";
    let looked = 0;
    let found = 0;
    const sample: Buffer[] = [];
    do {
      const reply = (await connection.command("SCAN", cursor, "COUNT", STEP)) as readonly Reply[];
      cursor = String(reply[0]);
      for (const key of reply[1] as readonly Buffer[]) {
        looked++;
        if (key.length < wanted.length || key.compare(wanted, 0, wanted.length, 0, wanted.length) !== 0)
          continue;
        found++;
        if (sample.length < SIZED_KEYS) sample.push(Buffer.from(key));
      }
    } while (cursor !== "0" && now() < until);
    const complete = cursor === "0";
    const keys = complete || looked === 0 ? found : Math.round((found / looked) * total);
    const sizes = await Promise.all(
      sample.map((key) => connection.command("STRLEN", key).then(Number, () => 0)),
    );
    const sampled = sizes.reduce(
      (sum, size, at) => sum + size + (sample[at] as Buffer).length + KEY_OVERHEAD,
      0,
    );
    const bytes = sample.length === 0 ? 0 : Math.round((sampled / sample.length) * keys);
    return { keys, bytes, approximate: true };
  } finally {
    connection.destroy(new ConnectionError("the look at the store is over"));
  }
}

/** The prefix as a pattern that matches itself only. */
function escaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]^]/g, "\\$&");
}
