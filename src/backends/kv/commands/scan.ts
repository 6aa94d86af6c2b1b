// Looks through the keys of one server with a cursor, on a connection of its own.
import type { ScanItem, Usage } from "../../../core/backend.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { decodeHeader, decodeRecord, INCOMPLETE } from "../../../core/frame/frame.ts";
import type { StoreRecord } from "../../../core/record.ts";
import { keyOfBytes } from "../../wire/key-bytes.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { inOurWords } from "../resp/reply-error.ts";
import type { Argument } from "../resp/writer.ts";
import type { Connection } from "../server/connection.ts";
import type { KvNode } from "../server/node.ts";
import type { CommandSender } from "./commands.ts";

/** Keys a step of the cursor looks at. */
const STEP = "1000";
/** Of so many keys the records are asked for together: more at a time would take more memory, and no less time. */
const AT_ONCE = 250;
/** Enough for the header of nearly every entry. */
const LAST_OF_HEADER = "255";
/** What a key takes in the server besides its name and value, about. */
const KEY_OVERHEAD = 64;

export interface Scan {
  readonly prefix: string;
  readonly signal: AbortSignal | undefined;
  /** Whoever knows where a key is that has left the server meanwhile. */
  readonly elsewhere: CommandSender;
  /** Whether to look at this key; all of them unless given. */
  readonly wants?: (key: string) => boolean;
}

/** Every record of a server whose key starts with a prefix; payloads are left out. */
export async function* scanNode(node: KvNode, scan: Scan): AsyncIterable<readonly ScanItem[]> {
  if (scan.signal?.aborted) return;
  const connection = await node.aside();
  try {
    yield* scanOver(connection, scan);
  } finally {
    connection.destroy(scanIsOver());
  }
}

export const scanIsOver = (): ConnectionError => new ConnectionError("the scan is over");

/** As scanNode, over a connection that is nobody else's meanwhile. */
export async function* scanOver(connection: Connection, scan: Scan): AsyncIterable<readonly ScanItem[]> {
  let cursor = "0";
  do {
    if (scan.signal?.aborted) return;
    const step = await scanStep(connection, cursor, scan.prefix);
    cursor = step.cursor;
    yield await recordsOf(connection, step.keys, scan);
  } while (cursor !== "0");
}

interface Step {
  readonly cursor: string;
  readonly keys: readonly Buffer[];
}

async function scanStep(connection: Connection, cursor: string, prefix: string): Promise<Step> {
  const pattern = `${escaped(prefix)}*`;
  const asked = connection.command("SCAN", cursor, "MATCH", pattern, "COUNT", STEP);
  const reply = (await asked.catch(fail)) as readonly Reply[];
  return { cursor: String(reply[0]), keys: reply[1] as readonly Buffer[] };
}

async function recordsOf(
  connection: Connection,
  keys: readonly Buffer[],
  { elsewhere, wants }: Scan,
): Promise<readonly ScanItem[]> {
  const items: ScanItem[] = [];
  for (let at = 0; at < keys.length; at += AT_ONCE) {
    const found = keys.slice(at, at + AT_ONCE).map((bytes) => new FoundKey(bytes, connection, elsewhere));
    const wanted = wants === undefined ? found : found.filter(({ key }) => wants(key));
    for (const item of await Promise.all(wanted.map((each) => each.item()))) {
      if (item !== undefined) items.push(item);
    }
  }
  return items;
}

/** A key that a server has named, and what is under it. */
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

  /** Undefined for what is gone meanwhile, or none of ours. */
  async item(): Promise<ScanItem | undefined> {
    const [head, length] = await Promise.all([
      this.#ask(["GETRANGE", this.#bytes, "0", LAST_OF_HEADER]),
      this.#ask(["STRLEN", this.#bytes]),
    ]);
    if (!Buffer.isBuffer(head) || head.length === 0) return undefined;
    const inHead = readable(() => decodeHeader(head, this.key));
    const record = inHead === INCOMPLETE ? await this.#whole() : inHead;
    if (record === undefined) return undefined;
    return { key: this.key, record, bytes: Number(length) + this.#bytes.length + KEY_OVERHEAD };
  }

  async #whole(): Promise<StoreRecord | undefined> {
    const whole = await this.#ask(["GET", this.#bytes]);
    return Buffer.isBuffer(whole) ? readable(() => decodeRecord(whole, this.key)) : undefined;
  }

  /** Null where it is not a string. A step asks for thousands of these: each is one promise. */
  #ask(args: readonly Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const refused = (error: Error): void => void this.#refused(error, args).then(resolve, reject);
      this.#connection.send(args, { resolve, reject: refused });
    });
  }

  /** Whatever goes wrong is told: nobody could tell it from a key that is gone. */
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

/** A refusal of the server leaves the backend in our own words. */
export function fail(error: unknown): never {
  throw inOurWords(toError(error));
}

/** Something else may write under the prefix. */
function readable<T>(decode: () => T): T | undefined {
  try {
    return decode();
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
      sample.map((key) => connection.command("STRLEN", key).then(Number, noneIfRefused)),
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

/** It is not a string, or has moved: an estimate does without it. */
function noneIfRefused(error: unknown): number {
  if (error instanceof ReplyError) return 0;
  throw error;
}

/** The prefix as a pattern that matches itself only. */
function escaped(prefix: string): string {
  return prefix.replace(/[\\*?[\]^]/g, "\\$&");
}
