// Reads and writes records by meta commands, on whichever server a key is.
import type { Failed, KeyedRecord, RecordTaker, SwapResult } from "../../core/backend.ts";
import { BackendError } from "../../core/errors.ts";
import { decodeRecord, encodeRecord, RecordBytes } from "../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../core/record.ts";
import type { Connection } from "./connection.ts";
import { isHashed } from "./item-key.ts";
import type { MetaReply } from "./meta-reader.ts";
import { type KeyLocation, overConnection } from "./node.ts";
import { CommandPending, READ, type ReadAnswer, STORED } from "./pending-command.ts";
import { ManyRecords, PartAnswer, RecordAnswer, StampAnswer, StampedRecord } from "./read-answer.ts";

type Found = StoreRecord | undefined;
type NextRecord = Omit<KeyedRecord, "key">;

export interface KeyLocator {
  locate(key: string): KeyLocation;
}

/** Reads and expires an item in one step: one caller gets it, and it is gone for all others. */
const TAKE_FLAGS = " b v T-1";
const TOUCH_FLAGS = " b";
const ENDLESS_FLAGS = " b";

export class MemcachedCommands {
  readonly #locator: KeyLocator;
  /** The latest lifetime of an item. */
  #lifetime = { token: 0, flags: `${ENDLESS_FLAGS} T0` };

  constructor(locator: KeyLocator) {
    this.#locator = locator;
  }

  read(key: string): Promise<Found> {
    return new Promise((resolve, reject) => {
      const take = (record: Found): boolean => {
        resolve(record);
        return true;
      };
      this.readThen(key, false, { take, fail: reject });
    });
  }

  readThen(key: string, _isWatched: boolean, taker: RecordTaker): void {
    this.#read(key, new RecordAnswer(key, taker));
  }

  /** A record and the ids of stamps, in one round trip. */
  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const stamped = new StampedRecord(key, stamps.length, taker);
    this.#read(key, stamped);
    for (let at = 0; at < stamps.length; at++) this.#readStamp(stamps[at] as string, stamped, at);
  }

  readMany(keys: readonly string[]): Promise<readonly Found[]> {
    return new Promise((resolve, reject) => {
      const many = new ManyRecords(keys, resolve, reject);
      for (let at = 0; at < keys.length; at++) this.#read(keys[at] as string, new PartAnswer(many, at));
    });
  }

  write(item: KeyedRecord): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(item, resolve, reject));
  }

  writeThen(item: KeyedRecord, done: () => void, failed: Failed): void {
    const location = this.#locator.locate(item.key);
    const { connection } = location.source;
    if (connection !== undefined) this.#store(connection, location, item, done, failed);
    else this.#storeLater(location, item, done, failed);
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  swap(key: string, expected: Token | undefined, next: NextRecord | undefined): Promise<SwapResult> {
    const location = this.#locator.locate(key);
    return overConnection(location.source, async (connection) =>
      swapRecord({
        connection,
        key,
        expected,
        next,
        store: (item, conditions) => {
          const { flags, data } = this.#item(location, { key, ...item }, conditions);
          return connection.stored(key, flags, data);
        },
      }),
    );
  }

  take(key: string): Promise<Found> {
    return new Promise((resolve, reject) => {
      const done = (reply: MetaReply): void => {
        try {
          resolve(reply.code === "VA" ? recordIn(reply, key) : undefined);
        } catch (error) {
          reject(error);
        }
      };
      const send = (connection: Connection): void =>
        connection.send("mg", key, TAKE_FLAGS, new CommandPending(READ, done, reject));
      this.#locator.locate(key).source.whenUp(send, reject);
    });
  }

  takeMany(keys: readonly string[]): Promise<readonly Found[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async touch(keys: readonly string[]): Promise<void> {
    const touchOne = (key: string): Promise<unknown> =>
      overConnection(this.#locator.locate(key).source, (connection) =>
        connection.command("mg", key, TOUCH_FLAGS),
      );
    await Promise.all(keys.map(touchOne));
  }

  #read(key: string, answer: ReadAnswer): void {
    const { source } = this.#locator.locate(key);
    const { connection } = source;
    if (connection !== undefined) connection.read(key, answer);
    else
      source.whenUp(
        (opened) => opened.read(key, answer),
        (error) => answer.failed(error),
      );
  }

  /** Many calls of one tick ask for the same stamps: each is read and decoded once. */
  #readStamp(key: string, stamped: StampedRecord, at: number): void {
    const reading = this.#locator.locate(key).source.connection?.reading(key);
    if (reading instanceof StampAnswer) reading.add(stamped, at);
    else this.#read(key, new StampAnswer(key, stamped, at));
  }

  // Apart from its caller: a closure in that would cost every write a context.
  #storeLater(location: KeyLocation, item: KeyedRecord, done: () => void, failed: Failed): void {
    location.source.whenUp((connection) => this.#store(connection, location, item, done, failed), failed);
  }

  #store(
    connection: Connection,
    location: KeyLocation,
    item: KeyedRecord,
    done: () => void,
    failed: Failed,
  ): void {
    try {
      const { flags, data } = this.#item(location, item, "");
      connection.store(item.key, flags, data, new CommandPending(STORED, done, failed));
    } catch (error) {
      failed(error);
    }
  }

  /** Flags and bytes of an item to store. */
  #item(location: KeyLocation, { key, record, lifetimeMs }: KeyedRecord, flags: string) {
    const data = isHashed(key) ? encodeRecord(record, { withKey: true }) : new RecordBytes(record);
    const isLimited = lifetimeMs !== Number.POSITIVE_INFINITY;
    const own = isLimited ? this.#lifetimeFlags(lifetimeToken(lifetimeMs, location)) : ENDLESS_FLAGS;
    return { flags: own + flags, data };
  }

  /** Most items have the same: they are spelled once. */
  #lifetimeFlags(token: number): string {
    if (this.#lifetime.token !== token) this.#lifetime = { token, flags: `${ENDLESS_FLAGS} T${token}` };
    return this.#lifetime.flags;
  }
}

/** memcached takes longer lifetimes for a time since the epoch. */
const LONGEST_RELATIVE_S = 30 * 24 * 3600;
/** Times since the epoch are signed 32-bit numbers, and 0 means forever. */
const LATEST_S = 2 ** 31 - 1;
/** Rounding errors of a lifetime that is a difference of two times. */
const ROUNDING_MS = 0.1;

/**
 * The token of flag T. A server counts seconds of its own: n of them take between n - 1 and n seconds, so one is added. A
 * record that stays too long does no harm: its reader checks the exact expiry in it. A lifetime is never mistaken for
 * forever.
 */
export function lifetimeToken(lifetimeMs: number, server: Pick<KeyLocation, "serverNow">): number {
  const seconds = Math.max(1, Math.ceil((lifetimeMs - ROUNDING_MS) / 1_000)) + 1;
  if (seconds <= LONGEST_RELATIVE_S) return seconds;
  const until = Math.floor(server.serverNow() / 1_000) + seconds;
  return until > LATEST_S ? 0 : until;
}

// Compare-and-swap. memcached compares its own number (CAS), not our version: the record is read, its version compared, and
// replaced only if its CAS is still the one that was read. All of it happens on one connection: another may lead to a server
// that was restarted, where the same number stands for another record. A broken connection ends the swap.

interface Swap {
  readonly connection: Connection;
  readonly key: string;
  readonly expected: Token | undefined;
  readonly next: NextRecord | undefined;
  /** Stores the next record with these flags besides those of every record. */
  store(next: NextRecord, flags: string): Promise<MetaReply>;
}

/** Losing more often in a row means that something is wrong. */
const MAX_ROUNDS = 1_000;
const ADD_FLAGS = " c ME";
const READ_CAS_FLAGS = " b v c";
const WON: SwapResult = { won: true };

async function swapRecord(swap: Swap): Promise<SwapResult> {
  if (await swapWithoutReading(swap)) return WON;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const result = await readAndSwap(swap);
    if (result !== undefined) return result;
  }
  throw new BackendError("STORE_FAILED", `a record was changed by others ${MAX_ROUNDS} times in a row`);
}

/** Possible where no record is expected, or the CAS of the expected one is remembered. */
async function swapWithoutReading(swap: Swap): Promise<boolean> {
  const { connection, key, expected, next } = swap;
  if (expected === undefined) return next !== undefined && storeNext(swap, next, ADD_FLAGS);
  const cas = connection.cas.take(key, expected);
  return cas !== undefined && replace(swap, cas);
}

/** undefined: the record changed between the read and the write. */
async function readAndSwap(swap: Swap): Promise<SwapResult | undefined> {
  const { connection, key, expected, next } = swap;
  const reply = await connection.command("mg", key, READ_CAS_FLAGS);
  const isThere = reply.code === "VA";
  const current = isThere ? recordIn(reply, key) : undefined;
  if (current?.version !== expected) return { won: false, current };
  // An item without a record for this key belongs to another key with the same hash, and is replaced.
  if (isThere) return (await replace(swap, reply.cas)) ? WON : undefined;
  return next === undefined || (await storeNext(swap, next, ADD_FLAGS)) ? WON : undefined;
}

async function replace(swap: Swap, cas: string): Promise<boolean> {
  const { connection, key, next } = swap;
  if (next !== undefined) return storeNext(swap, next, ` c C${cas}`);
  return (await connection.command("md", key, ` b C${cas}`)).code === "HD";
}

async function storeNext(
  { connection, key, store }: Swap,
  next: NextRecord,
  flags: string,
): Promise<boolean> {
  const { code, cas } = await store(next, flags);
  if (code !== "HD") return false;
  connection.cas.keep(key, next.record.version, cas);
  return true;
}

function recordIn({ bytes, start, end }: MetaReply, key: string): Found {
  return decodeRecord(bytes, key, start, end);
}
