// Records moved by single-key commands, wherever a key's server is.
import type { Failed, KeyedRecord, RecordTaker, SwapResult, TakenMany } from "../../../core/backend.ts";
import type { Clock } from "../../../core/clock.ts";
import { OperationTimeoutError } from "../../../core/errors.ts";
import { decodeRecord, RecordBytes } from "../../../core/frame/frame.ts";
import type { StoreRecord, Token } from "../../../core/record.ts";
import { type Reply, ReplyError, Span } from "../resp/reply.ts";
import { inOurWords } from "../resp/reply-error.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer } from "../server/connection.ts";
import { SWAP, SWAP_SHA } from "./scripts.ts";

/** Where commands go: the router, or a connection that is not in use yet. */
export interface CommandSender {
  send(key: string, args: readonly Argument[], answer: Answer): void;
  /** GET; the reply is a span, copy what is kept. `isWatched`: see Backend.readThen. */
  read(key: string, isWatched: boolean, answer: Answer): void;
  /** MGET, answered as a whole. Returns false, having done nothing, where one command cannot ask for them all. */
  readMany?(keys: readonly string[], isWatched: boolean, answer: Answer): boolean;
}

/** How long a caller waits. */
export interface Patience {
  readonly clock: Clock;
  readonly operationTimeoutMs: number;
}

const NOTHING = "";

export class KvCommands {
  readonly #commands: CommandSender;
  readonly #patience: Patience;

  constructor(commands: CommandSender, patience: Patience) {
    this.#commands = commands;
    this.#patience = patience;
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
    const args: Argument[] = ["SET", key, new RecordBytes(record)];
    const lifetime = wholeLifetime(lifetimeMs);
    if (lifetime !== NOTHING) args.push("PX", lifetime);
    this.#commands.send(key, args, new Confirmation(done, failed));
  }

  async writeMany(items: readonly KeyedRecord[]): Promise<void> {
    await Promise.all(items.map((item) => this.write(item)));
  }

  async swap(
    key: string,
    expected: Token | undefined,
    next: Omit<KeyedRecord, "key"> | undefined,
  ): Promise<SwapResult> {
    const rest: Argument[] = [
      "1",
      key,
      expected === undefined ? NOTHING : Buffer.from(expected, "latin1"),
      next === undefined ? NOTHING : new RecordBytes(next.record),
      next === undefined ? NOTHING : wholeLifetime(next.lifetimeMs),
    ];
    const reply = await this.#script(key, rest);
    return reply === 1 ? { won: true } : { won: false, current: recordOf(reply, key) };
  }

  async take(key: string): Promise<StoreRecord | undefined> {
    return recordOf(await this.ask(key, ["GETDEL", key]), key);
  }

  async takeMany(keys: readonly string[]): Promise<readonly (StoreRecord | undefined)[]> {
    return Promise.all(keys.map((key) => this.take(key)));
  }

  async removeMany(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#remove(key)));
  }

  async touch(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.ask(key, ["TOUCH", key])));
  }

  /** `due`: see Answer. */
  ask(key: string, args: readonly Argument[], due?: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#commands.send(key, args, { due, resolve, reject: (error) => reject(inOurWords(error)) });
    });
  }

  #remove(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#commands.send(key, ["UNLINK", key], new Confirmation(resolve, reject));
    });
  }

  /** By its digest; a server that does not know the script is told it, within the time of the first question. */
  #script(key: string, rest: readonly Argument[]): Promise<Reply> {
    const { clock, operationTimeoutMs } = this.#patience;
    const due = clock.now() + operationTimeoutMs;
    return new Promise((resolve, reject) => {
      this.#commands.send(key, ["EVALSHA", SWAP_SHA, ...rest], {
        due,
        resolve,
        reject: (error) => {
          if (!isUnknownScript(error)) reject(inOurWords(error));
          else if (clock.now() < due) this.ask(key, ["EVAL", SWAP, ...rest], due).then(resolve, reject);
          else reject(toldTooLate(error));
        },
      });
    });
  }
}

/** A class for the same reason as `Pending` in connection.ts. */
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
    this.#taker.fail(inOurWords(error));
  }
}

/** Records that are asked for together: all in one reply, or each in its own and complete with the last. */
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
      for (let at = 0; at < this.#keys.length; at++) this.#set(at, (replies as readonly Reply[])[at] ?? null);
    } catch (error) {
      this.#failed(error);
      return false;
    }
    return this.#done(this.#records);
  }

  part(at: number, reply: Reply): void {
    try {
      this.#set(at, reply);
    } catch (error) {
      this.#failed(error);
    }
    if (--this.#left === 0) this.#done(this.#records);
  }

  reject(error: Error): void {
    this.#failed(inOurWords(error));
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
    this.#failed(inOurWords(error));
  }
}

const isUnknownScript = (error: Error): boolean => error instanceof ReplyError && error.code === "NOSCRIPT";

function toldTooLate(cause: Error): OperationTimeoutError {
  return new OperationTimeoutError("the store said too late that it lacks a script", { cause });
}

function recordOf(reply: Reply, key: string): StoreRecord | undefined {
  if (reply instanceof Span) return decodeRecord(reply.bytes, key, reply.start, reply.end);
  return Buffer.isBuffer(reply) ? decodeRecord(reply, key) : undefined;
}

/** Whole milliseconds, at least one; nothing for ever. The longest that a server takes stands for ever too. */
function wholeLifetime(lifetimeMs: number): string {
  if (lifetimeMs > Number.MAX_SAFE_INTEGER / 2) return NOTHING;
  return String(Math.max(1, Math.floor(lifetimeMs)));
}
