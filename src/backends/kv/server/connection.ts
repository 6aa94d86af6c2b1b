// One connection to one server: pipelined commands, pushes in order with the replies, a deadline for every reply.
import type { Socket } from "node:net";
import type { XCacheError } from "../../../core/errors.ts";
import { atEndOfTurn } from "../../../core/event-loop.ts";
import { toError } from "../../../core/events.ts";
import { notAnswered } from "../../wire/connection-error.ts";
import type { ConnectionOwner } from "../../wire/reconnecting.ts";
import { ReplyQueue } from "../../wire/reply-queue.ts";
import { type Endpoint, type Intake, nameOf, openSocket, type SocketSettings } from "../../wire/socket.ts";
import { RespReader } from "../resp/reader.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { type Argument, RespWriter } from "../resp/writer.ts";
import { lost, notResp, refused } from "./connection-error.ts";
import { type Answer, PendingCommand, Reads, ReadTogether } from "./pending-command.ts";

export { type Endpoint, nameOf } from "../../wire/socket.ts";
export type { Answer } from "./pending-command.ts";

export interface Login {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

export interface ConnectionSettings extends Login, SocketSettings {
  readonly database: number;
  readonly operationTimeoutMs: number;
  /** Whether one command may read keys of several slots; a cluster refuses that. */
  readonly readsTogether: boolean;
}

export interface ConnectionListener extends ConnectionOwner {
  /** A push, in order with the replies; also while the connection is still being prepared. */
  pushed(push: readonly Reply[]): void;
}

/** Keys per MGET at most, so that none keeps the server busy for long. */
const MOST_READ_TOGETHER = 512;

/**
 * Commands of one tick that are sent before it ends, so that the server starts on them while the rest are encoded. Reads
 * wait for the end of the tick: they are encoded so fast that a second write to the socket costs more than it gains.
 */
const MOST_UNSENT = 32;

const ASKING = ["ASKING"];
const PING = ["PING"];
const IGNORED: Answer = { resolve: () => {}, reject: () => {} };

/** Which reads the server tracks: all, only those announced by CLIENT CACHING YES (`in`), or all but those declined (`out`). */
export type Watching = "all" | "in" | "out";

/** Declining costs a command; from this many keys on, that is less than tracking them costs the server. */
const FEWEST_DECLINED = 8;

let connections = 0;

export class Connection {
  /** Unique within this process; never 0. */
  readonly id = ++connections;
  /** When the latest answered command was sent: every push from before then has arrived. */
  provenAt = 0;
  /** The server tracks what is read over this connection and pushes changes. */
  isTracked = false;
  watching: Watching = "all";
  readonly #settings: ConnectionSettings;
  readonly #listener: ConnectionListener;
  readonly #writer = new RespWriter();
  readonly #socket: Socket;
  readonly #pending: ReplyQueue<PendingCommand>;
  #reads = new Reads();
  #watchedReads = new Reads();
  #flushing = false;
  /** The answer to CLIENT CACHING YES. If that is refused, reads would be taken for tracked although they are not. */
  readonly #trackingRequest: Answer = {
    resolve: () => {},
    reject: (error) => this.destroy(refused(this.endpoint, error)),
  };
  #closed: XCacheError | undefined;
  readonly #abort = (): void => this.destroy(this.#listener.signal?.reason);
  readonly #reader = new RespReader({
    reply: (reply) => this.#reply(reply),
    push: (push) => this.#listener.pushed(push),
    takesSpans: () => this.#pending.oldest?.isRead === true,
  });

  private constructor(settings: ConnectionSettings, listener: ConnectionListener, socket: Socket) {
    this.#settings = settings;
    this.#listener = listener;
    this.#socket = socket;
    const { endpoint, clock, operationTimeoutMs, background = false } = settings;
    this.#pending = new ReplyQueue({
      clock,
      limitMs: operationTimeoutMs,
      holdsProcess: !background,
      late: () => this.destroy(notAnswered(this.name, operationTimeoutMs)),
    });
    socket.on("error", (error) => this.destroy(lost(endpoint, error, this.provenAt > 0)));
    socket.on("close", () => this.destroy(lost(endpoint, undefined, this.provenAt > 0)));
    listener.signal?.addEventListener("abort", this.#abort);
    // It may have been aborted since the socket was opened.
    if (listener.signal?.aborted) this.#abort();
  }

  /** Connects, logs in and selects the database. Rejects with ConnectionError or OperationTimeoutError. */
  static async open(settings: ConnectionSettings, listener: ConnectionListener): Promise<Connection> {
    // Replaced before anything arrives: the server only answers.
    let intake: Intake = () => false;
    const { endpoint } = settings;
    const socket = await openSocket(settings, {
      name: nameOf(endpoint),
      signal: listener.signal,
      intake: (bytes, length) => intake(bytes, length),
      lost: (cause) => lost(endpoint, cause, false),
    });
    const connection = new Connection(settings, listener, socket);
    intake = (bytes, length) => connection.#feed(bytes, length);
    try {
      await connection.#greet();
      return connection;
    } catch (thrown) {
      const error = refused(endpoint, thrown, settings.password);
      connection.destroy(error);
      throw error;
    }
  }

  get name(): string {
    return nameOf(this.endpoint);
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  get endpoint(): Endpoint {
    return this.#settings.endpoint;
  }

  /** How many commands wait for their replies, or to be sent at the end of the tick. */
  get inFlight(): number {
    return this.#pending.length + this.#reads.keys.length + this.#watchedReads.keys.length;
  }

  /** Whether the socket has stopped taking data: more of it would only pile up here. */
  get isClogged(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** When the oldest unanswered command was sent; Infinity if there is none. */
  get awaitedSince(): number {
    return this.#pending.awaitedSince;
  }

  /** Sent with the other commands of this tick, in order. */
  send(args: readonly Argument[], answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    try {
      this.#append(args, answer);
    } catch (thrown) {
      // The caller may be long gone from the stack: only the answer reaches it.
      answer.reject(toError(thrown));
      return;
    }
    if (this.#pending.unsent >= MOST_UNSENT) this.#flush();
    else this.#flushSoon();
  }

  /** Preceded by ASKING, which applies to the next command only: nothing may come between the two. */
  sendAsking(args: readonly Argument[], answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    this.#append(ASKING, IGNORED);
    this.#flushSoon();
    try {
      this.#append(args, answer);
    } catch (thrown) {
      // Uses up the ASKING, which would otherwise apply to another caller's command.
      this.#append(PING, IGNORED);
      answer.reject(toError(thrown));
    }
  }

  /**
   * GET, after the other commands of this tick and together with its other reads. The reply is a span: copy what you keep.
   * `isWatched`: the server is to push changes.
   */
  read(key: string, isWatched: boolean, answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    const reads = isWatched ? this.#watchedReads : this.#reads;
    reads.keys.push(key);
    reads.answers.push(answer);
    this.#flushSoon();
  }

  /** MGET, in order with the commands of this tick. Returns false if one command cannot read all keys. */
  readMany(keys: readonly string[], isWatched: boolean, answer: Answer): boolean {
    if (!this.#settings.readsTogether || keys.length > MOST_READ_TOGETHER) return false;
    if (this.#closed !== undefined) answer.reject(this.#closed);
    else {
      this.#appendGet("MGET", keys, isWatched, answer);
      this.#flushSoon();
    }
    return true;
  }

  /** A command that is answered by pushes instead of a reply, such as SUBSCRIBE. Errors are not reported. */
  tell(args: readonly Argument[]): void {
    if (this.#closed !== undefined) return;
    this.#writer.append(args);
    this.#flushSoon();
  }

  command(...args: Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(args, { resolve, reject }));
  }

  /** Commands that were sent may still be executed; only a closed socket guarantees that none follows them. */
  destroy(reason: XCacheError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#listener.signal?.removeEventListener("abort", this.#abort);
    this.#socket.destroy();
    const answers = [
      ...this.#pending.close().map((pending) => pending.take()),
      ...this.#reads.answers,
      ...this.#watchedReads.answers,
    ];
    this.#reads = new Reads();
    this.#watchedReads = new Reads();
    for (const answer of answers) answer.reject(reason);
    this.#listener.closed(reason);
  }

  #feed(bytes: Buffer, length: number): boolean {
    try {
      return this.#reader.feed(bytes, length);
    } catch (error) {
      this.destroy(notResp(this.endpoint, error));
      return true;
    }
  }

  async #greet(): Promise<void> {
    const { username, password, database } = this.#settings;
    const hello = ["HELLO", "3"];
    if (password !== undefined) hello.push("AUTH", username ?? "default", password);
    const greeting = this.command(...hello, "SETNAME", "xcache");
    const selected = database === 0 ? undefined : this.command("SELECT", String(database));
    await Promise.all([greeting, selected]);
  }

  #append(args: readonly Argument[], answer: Answer): void {
    this.#writer.append(args);
    this.#pending.add(new PendingCommand(answer, false));
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    atEndOfTurn(this.#flushRest);
  }

  readonly #flushRest = (): void => {
    this.#flushing = false;
    this.#flush();
  };

  #flush(): void {
    if (this.#closed !== undefined) return;
    this.#appendReads();
    if (this.#writer.isEmpty) return;
    this.#pending.sent();
    this.#socket.write(this.#writer.take());
  }

  #appendReads(): void {
    const [reads, watched] = [this.#reads, this.#watchedReads];
    if (reads.keys.length > 0) {
      this.#reads = new Reads();
      this.#appendGets(reads, false);
    }
    if (watched.keys.length > 0) {
      this.#watchedReads = new Reads();
      this.#appendGets(watched, true);
    }
  }

  #appendGets({ keys, answers }: Reads, isWatched: boolean): void {
    if (!this.#settings.readsTogether || keys.length === 1) {
      for (const [at, key] of keys.entries()) this.#appendGet("GET", [key], isWatched, answers[at] as Answer);
      return;
    }
    for (let from = 0; from < keys.length; from += MOST_READ_TOGETHER) {
      const asked = answers.slice(from, from + MOST_READ_TOGETHER);
      const some = keys.slice(from, from + MOST_READ_TOGETHER);
      this.#appendGet("MGET", some, isWatched, new ReadTogether(asked));
    }
  }

  #appendGet(command: "GET" | "MGET", keys: readonly string[], isWatched: boolean, answer: Answer): void {
    if (isWatched && this.watching === "in")
      this.#append(["CLIENT", "CACHING", "YES"], this.#trackingRequest);
    else if (!isWatched && this.watching === "out" && keys.length >= FEWEST_DECLINED) {
      this.#append(["CLIENT", "CACHING", "NO"], IGNORED);
    }
    this.#writer.appendTexts(command, keys);
    this.#pending.add(new PendingCommand(answer, true));
  }

  /** Returns false if no part of the reply is referenced any more. */
  #reply(reply: Reply): unknown {
    const next = this.#pending.oldest;
    if (next === undefined) throw new Error("the server sent a reply to no command");
    this.#pending.shift();
    this.provenAt = next.sentAt;
    const answer = next.take();
    return reply instanceof ReplyError ? answer.reject(reply) : answer.resolve(reply);
  }
}
