// Reads and writes records with single-key commands, whichever server holds the key.
import type {
  Failed,
  KeyedRecord,
  RecordHead,
  RecordTaker,
  SwapResult,
  TakenMany,
} from "../../../core/backend.ts";
import { OperationTimeoutError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { decodeRecord, RecordBytes, VERSION_OFFSET, wholeHead } from "../../../core/frame/frame.ts";
import { nodeCrypto } from "../../../core/lazy-builtin.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { repeatWhileLost } from "../../../core/resilience/repeat-lost.ts";
import { type Reply, ReplyError, Span } from "../resp/reply.ts";
import { toXCacheError } from "../resp/reply-error.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer } from "../server/connection.ts";
import { isForbidden, Restrictions } from "../server/restrictions.ts";
import { readHead } from "./record-head.ts";
import type { CommandLimits, CommandSender } from "./router.ts";
import type { WatchedSwaps } from "./watched-swaps.ts";

const NOTHING = "";
const VERSION_LENGTH = 8;

/**
 * Compare-and-swap on the version of a record. Scripts touch one key.
 *
 * KEYS[1]; ARGV: the expected version, empty for "no record"; the next frame, empty to delete; its lifetime in
 * milliseconds, empty for no expiry. Replies 1 if the record was replaced, else the current record or nil.
 */
const SWAP = script(`
local present = redis.call('GETRANGE', KEYS[1], ${VERSION_OFFSET}, ${VERSION_OFFSET + VERSION_LENGTH - 1})
if present ~= ARGV[1] then return redis.call('GET', KEYS[1]) end
if ARGV[2] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1`);

/** GETDEL, for a server that does not have it. KEYS[1]. */
const TAKE = script(`
local present = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return present`);

interface Script {
  readonly text: string;
  readonly digest: string;
}

/** The digest is made on first use: many processes only read, and node:crypto is slow to load. */
function script(text: string): Script {
  let digest: string | undefined;
  return {
    text,
    get digest() {
      digest ??= nodeCrypto().createHash("sha1").update(text).digest("hex");
      return digest;
    },
  };
}

export class KvCommands {
  readonly #commands: CommandSender;
  readonly #limits: CommandLimits;
  readonly #restrictions: Restrictions;
  readonly #swaps: WatchedSwaps | undefined;
  /** Redis 6.0 does not have it. */
  #hasGetDel = true;

  /** `swaps`: for servers without scripts. */
  constructor(
    commands: CommandSender,
    limits: CommandLimits,
    restrictions = new Restrictions(() => {}),
    swaps?: WatchedSwaps,
  ) {
    this.#commands = commands;
    this.#limits = limits;
    this.#restrictions = restrictions;
    this.#swaps = swaps;
  }

  read(key: string): Promise<StoreRecord | undefined> {
    return new Promise((resolve, reject) => {
      const take = (record: StoreRecord | undefined): boolean => {
        resolve(record);
        return true;
      };
      this.readThen(key, true, { take, fail: reject });
    });
  }

  readThen(key: string, isWatched: boolean, taker: RecordTaker): void {
    this.#commands.read(key, isWatched, new RecordAnswer(key, taker));
  }

  /** A user that may not read parts of values reads the whole. */
  async readHead(key: string, most: number): Promise<RecordHead | undefined> {
    const { clock, operationTimeoutMs } = this.#limits;
    try {
      const found = await repeatWhileLost(clock, operationTimeoutMs, (due) =>
        readHead((args) => this.ask(key, args, due), key, most),
      );
      return found?.head;
    } catch (error) {
      if (!isForbidden((error as Error).cause)) throw error;
      return wholeHead(await this.read(key));
    }
  }

  readMany(keys: readonly string[], isWatched: boolean): Promise<readonly (StoreRecord | undefined)[]> {
    return new Promise((resolve, reject) => {
      const keep = (records: readonly (StoreRecord | undefined)[]): boolean => {
        resolve(records);
        return true;
      };
      this.readManyThen(keys, isWatched, keep, reject);
    });
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    const many = new ManyRecords(keys, done, failed);
    if (keys.length === 0) done([]);
    else if (this.#commands.readMany?.(keys, isWatched, many) !== true) {
      for (let at = 0; at < keys.length; at++)
        this.#commands.read(keys[at] as string, isWatched, new PartAnswer(many, at));
    }
  }

  write(item: KeyedRecord): Promise<void> {
    return new Promise((resolve, reject) => this.writeThen(item, resolve, reject));
  }

  writeThen({ key, record, lifetimeMs }: KeyedRecord, done: () => void, failed: Failed): void {
    this.#commands.send(key, settingOf(key, record, lifetimeMs), new Confirmation(done, failed));
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    if (this.#restrictions.has("EVAL") && this.#swaps !== undefined)
      return this.#watchedSwap(key, expected, next, this.#swaps);
    const rest: Argument[] = [
      "1",
      key,
      expected === undefined ? NOTHING : Buffer.from(expected, "latin1"),
      next === undefined ? NOTHING : new RecordBytes(next.record),
      next === undefined ? NOTHING : wholeLifetime(next.lifetimeMs),
    ];
    try {
      const reply = await this.#script(SWAP, key, rest);
      return reply === 1 ? { won: true } : { won: false, current: recordOf(reply, key) };
    } catch (error) {
      const cause = (error as Error).cause;
      if (!isForbidden(cause)) throw error;
      this.#restrictions.add("EVAL", cause);
      if (this.#swaps === undefined) throw error;
      return this.#watchedSwap(key, expected, next, this.#swaps);
    }
  }

  async take(key: string): Promise<StoreRecord | undefined> {
    if (!this.#hasGetDel) return this.#getAndDelete(key);
    try {
      return recordOf(await this.ask(key, ["GETDEL", key]), key);
    } catch (error) {
      if (!isForbidden((error as Error).cause)) throw error;
      this.#hasGetDel = false;
      return this.#getAndDelete(key);
    }
  }

  async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async removeMany(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#remove(key)));
  }

  async touch(keys: readonly string[]): Promise<void> {
    try {
      await Promise.all(keys.map((key) => this.ask(key, ["TOUCH", key])));
    } catch (error) {
      const cause = (error as Error).cause;
      if (isForbidden(cause)) this.#restrictions.add("TOUCH", cause);
      throw error;
    }
  }

  /** `due`: see Answer. */
  ask(key: string, args: readonly Argument[], due?: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#commands.send(key, args, { due, resolve, reject: (error) => reject(toXCacheError(error)) });
    });
  }

  #remove(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#commands.send(key, ["DEL", key], new Confirmation(resolve, reject));
    });
  }

  async #watchedSwap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
    swaps: WatchedSwaps,
  ): Promise<SwapResult> {
    const change = next === undefined ? ["DEL", key] : settingOf(key, next.record, next.lifetimeMs);
    try {
      return await swaps.swap({ key, expected, change, recordOf: (reply) => recordOf(reply, key) });
    } catch (error) {
      if (isForbidden(error)) this.#restrictions.add("WATCH", error);
      throw toXCacheError(toError(error));
    }
  }

  async #getAndDelete(key: string): Promise<StoreRecord | undefined> {
    if (!this.#restrictions.has("EVAL")) return recordOf(await this.#script(TAKE, key, ["1", key]), key);
    // Another process may write in between: its record is then removed without being returned.
    const [present] = await Promise.all([this.ask(key, ["GET", key]), this.#remove(key)]);
    return recordOf(present, key);
  }

  /** EVALSHA; a server that does not know the script gets its text, within the same deadline. */
  #script({ text, digest }: Script, key: string, rest: readonly Argument[]): Promise<Reply> {
    const { clock, operationTimeoutMs } = this.#limits;
    const due = clock.now() + operationTimeoutMs;
    return new Promise((resolve, reject) => {
      this.#commands.send(key, ["EVALSHA", digest, ...rest], {
        due,
        resolve,
        reject: (error) => {
          if (!isUnknownScript(error)) reject(toXCacheError(error));
          else if (clock.now() < due) this.ask(key, ["EVAL", text, ...rest], due).then(resolve, reject);
          else reject(scriptUnknownTooLate(error));
        },
      });
    });
  }
}

/** A class rather than closures, for the reason given in server/pending-command.ts. */
class RecordAnswer implements Answer {
  readonly #key: string;
  readonly #taker: RecordTaker;

  constructor(key: string, taker: RecordTaker) {
    this.#key = key;
    this.#taker = taker;
  }

  resolve(reply: Reply): boolean {
    let record: StoreRecord | undefined;
    try {
      record = recordOf(reply, this.#key);
    } catch (error) {
      this.#taker.fail(error);
      return false;
    }
    return this.#taker.take(record);
  }

  reject(error: Error): void {
    this.#taker.fail(toXCacheError(error));
  }
}

/** A batch of reads, answered by one reply with all records or by one reply per record. */
class ManyRecords implements Answer {
  readonly #keys: readonly string[];
  readonly #records: (StoreRecord | undefined)[];
  readonly #done: TakenMany;
  readonly #failed: Failed;
  #left: number;

  constructor(keys: readonly string[], done: TakenMany, failed: Failed) {
    this.#keys = keys;
    this.#records = new Array<StoreRecord | undefined>(keys.length).fill(undefined);
    this.#done = done;
    this.#failed = failed;
    this.#left = keys.length;
  }

  resolve(replies: Reply): boolean {
    try {
      for (let at = 0; at < this.#keys.length; at++)
        this.#set(at, (replies as readonly Reply[])[at] as Reply);
    } catch (error) {
      this.#fail(error);
      return false;
    }
    return this.#done(this.#records);
  }

  part(at: number, reply: Reply): void {
    try {
      this.#set(at, reply);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (--this.#left === 0) this.#done(this.#records);
  }

  reject(error: Error): void {
    this.#fail(toXCacheError(error));
  }

  /** The first failure ends the batch; what the other parts become does not matter. */
  #fail(error: unknown): void {
    if (this.#left <= 0) return;
    this.#left = 0;
    this.#failed(error);
  }

  #set(at: number, reply: Reply): void {
    this.#records[at] = recordOf(reply, this.#keys[at] as string);
  }
}

class PartAnswer implements Answer {
  readonly #many: ManyRecords;
  readonly #at: number;

  constructor(many: ManyRecords, at: number) {
    this.#many = many;
    this.#at = at;
  }

  resolve(reply: Reply): void {
    this.#many.part(this.#at, reply);
  }

  reject(error: Error): void {
    this.#many.reject(error);
  }
}

class Confirmation implements Answer {
  readonly #done: () => void;
  readonly #failed: Failed;

  constructor(done: () => void, failed: Failed) {
    this.#done = done;
    this.#failed = failed;
  }

  resolve(): void {
    this.#done();
  }

  reject(error: Error): void {
    this.#failed(toXCacheError(error));
  }
}

const isUnknownScript = (error: Error): boolean => error instanceof ReplyError && error.code === "NOSCRIPT";

function scriptUnknownTooLate(cause: Error): OperationTimeoutError {
  return new OperationTimeoutError("the server reported NOSCRIPT after the deadline", { cause });
}

function recordOf(reply: Reply, key: string): StoreRecord | undefined {
  if (reply instanceof Span) return decodeRecord(reply.bytes, key, reply.start, reply.end);
  return Buffer.isBuffer(reply) ? decodeRecord(reply, key) : undefined;
}

function settingOf(key: string, record: StoreRecord, lifetimeMs: number): readonly Argument[] {
  const args: Argument[] = ["SET", key, new RecordBytes(record)];
  const lifetime = wholeLifetime(lifetimeMs);
  if (lifetime !== NOTHING) args.push("PX", lifetime);
  return args;
}

/** Whole milliseconds, at least one; empty for no expiry, as for a lifetime longer than a server accepts. */
function wholeLifetime(lifetimeMs: number): string {
  if (lifetimeMs > Number.MAX_SAFE_INTEGER / 2) return NOTHING;
  return String(Math.max(1, Math.floor(lifetimeMs)));
}
