// One connection to one server: pipelined commands, pushes in order with the replies, a deadline for every reply.
import type { Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { HostPort } from "../../../core/address/address.ts";
import { ConnectionError, type XCacheError } from "../../../core/errors.ts";
import { atEndOfTurn } from "../../../core/event-loop.ts";
import { toError } from "../../../core/events.ts";
import { markLoss } from "../../../core/resilience/store-failure.ts";
import { withDeadline } from "../../../core/resilience/with-deadline.ts";
import { Backlog, type Unsent } from "../../wire/backlog.ts";
import { notAnswered, notGreeted } from "../../wire/connection-error.ts";
import { Outgoing } from "../../wire/outgoing.ts";
import type { ConnectionOwner, ReconnectPauses } from "../../wire/reconnecting.ts";
import { ReplyQueue, SMALL_REQUEST } from "../../wire/reply-queue.ts";
import {
  type Endpoint,
  endSocket,
  nameOf,
  openSocket,
  type SocketOwner,
  type SocketSettings,
} from "../../wire/socket.ts";
import { RespReader } from "../resp/reader.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { type Argument, RespWriter } from "../resp/writer.ts";
import { lost, notResp, refused, unexpectedReply } from "./connection-error.ts";
import { type ExpectedReply, expectedOf, QUEUED, RECORD, RECORDS } from "./expected-reply.ts";
import { DEFAULT_USER, type GreetingOptions, greet, inTime } from "./handshake.ts";
import { HeldReplies } from "./held-replies.ts";
import { type Login, LoginRenewal, type LoginSource } from "./login.ts";
import { type Answer, PendingCommand, type ReadCommand, type UnansweredRead } from "./pending-command.ts";
import { ReadBatch } from "./read-batch.ts";

export { type Endpoint, nameOf } from "../../wire/socket.ts";
export type { Answer, UnansweredRead } from "./pending-command.ts";

export interface ConnectionSettings extends Omit<SocketSettings, "tls">, GreetingOptions {
  /** Undefined: none. A function is called for every connection. */
  readonly login?: Login | LoginSource | undefined;
  /** Undefined: no TLS. A function is called for every connection. */
  readonly tls?: ConnectionOptions | (() => Promise<ConnectionOptions>) | undefined;
  /** The login could not be renewed before it expires; the connection stays in use. */
  readonly loginFailed?: ((error: Error) => void) | undefined;
  /** Between attempts to connect. */
  readonly pauses?: ReconnectPauses | undefined;
  /** The address to use for one that a server announced. Default: the same. */
  readonly translate?: ((announced: HostPort) => HostPort) | undefined;
  readonly operationTimeoutMs: number;
  /** Whether one command may read keys of several slots; a cluster refuses that. */
  readonly readsTogether: boolean;
}

export interface ConnectionListener extends ConnectionOwner {
  /** The connection was lost before these reads were answered. Absent, or while it is being prepared: they are rejected. */
  unanswered?(reads: readonly UnansweredRead[]): void;
  /** Likewise, before these commands were sent. */
  unsent?(commands: readonly UnsentCommand[], reason: XCacheError): void;
  /** A push, in order with the replies; also while the connection is still being prepared. */
  pushed(push: readonly Reply[]): void;
}

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

/** A command that waits to be sent. */
export interface UnsentCommand extends Unsent<Connection> {
  readonly answer: Answer;
}

let connections = 0;

export class Connection {
  /** What the server calls this connection; undefined where it does not say. */
  clientId: number | undefined;
  /** What the server said about itself in reply to HELLO. */
  greeting: ReadonlyMap<string, string> = new Map();
  /** Why it speaks RESP2, without pushes; undefined: it speaks RESP3. */
  plain: ReplyError | undefined;
  /** The server that it leads to; undefined until it is known. */
  runId: string | undefined;
  /** Whether it was lost with commands in flight that change something: the server may still execute them. */
  leftChanges = false;
  /** Unique within this process; never 0. */
  readonly id = ++connections;
  /** When the latest answered command was sent: every push from before then has arrived. */
  provenAt = 0;
  /** The server tracks what is read over this connection and pushes changes. */
  isTracked = false;
  watching: Watching = "all";
  /** Whether it is in use: its unanswered reads are sent again when it is lost. */
  isInUse = false;
  readonly #settings: ConnectionSettings;
  readonly #listener: ConnectionListener;
  readonly #writer = new RespWriter();
  readonly #socket: Socket;
  readonly #pending: ReplyQueue<PendingCommand>;
  readonly #outgoing: Outgoing;
  readonly #backlog: Backlog<Connection, PendingCommand, UnsentCommand>;
  readonly #reads: ReadBatch;
  #flushing = false;
  /** The answer to CLIENT CACHING YES. If that is refused, reads would be taken for tracked although they are not. */
  readonly #trackingRequest: Answer = {
    resolve: () => {},
    reject: (error) => this.destroy(refused(this.endpoint, error)),
  };
  #closed: XCacheError | undefined;
  readonly #held = new HeldReplies();
  readonly #renewal: LoginRenewal;
  readonly #abort = (): void => this.destroy(this.#listener.signal?.reason);
  readonly #reader = new RespReader({
    reply: (reply) => this.#reply(reply),
    push: (push) => this.#listener.pushed(push),
    takesSpans: () => this.#pending.oldest?.keys !== undefined,
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
    this.#backlog = new Backlog(this.#pending, operationTimeoutMs);
    this.#reads = new ReadBatch(settings.readsTogether);
    this.#renewal = new LoginRenewal({
      clock,
      renew: () => this.#logInAgain(),
      failed: (error) => settings.loginFailed?.(error),
    });
    this.#outgoing = new Outgoing(socket, () => this.#pending.moved());
    socket.on("error", (error) => this.destroy(lost(endpoint, error, this.provenAt > 0)));
    socket.on("close", () => this.destroy(lost(endpoint, undefined, this.provenAt > 0)));
    listener.signal?.addEventListener("abort", this.#abort);
    // It may have been aborted since the socket was opened.
    if (listener.signal?.aborted) this.#abort();
  }

  /** Connects, logs in and selects the database. Rejects with ConnectionError or OperationTimeoutError. */
  static async open(settings: ConnectionSettings, listener: ConnectionListener): Promise<Connection> {
    const { endpoint, clock } = settings;
    const since = clock.now();
    const login = await inTime(settings.login, settings, listener.signal);
    const tls = await inTime(settings.tls, settings, listener.signal);
    const owner: SocketOwner = {
      name: nameOf(endpoint),
      signal: listener.signal,
      // Replaced before anything arrives: the server only answers.
      intake: () => false,
      lost: (cause) => lost(endpoint, cause, false),
    };
    const socket = await openSocket({ ...settings, tls, since }, owner);
    const connection = new Connection(settings, listener, socket);
    owner.intake = (bytes, length) => connection.#feed(bytes, length);
    try {
      const { connectTimeoutMs } = settings;
      const late = (): never => {
        throw notGreeted(nameOf(endpoint), connectTimeoutMs);
      };
      // What has arrived while the event loop was blocked is processed first.
      const options = { isSuspended: () => false };
      await withDeadline(clock, connectTimeoutMs, connection.#greet(login), late, options);
      return connection;
    } catch (thrown) {
      const error = refused(endpoint, thrown, login?.password);
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

  /** Why it is no longer open. */
  get closedBy(): XCacheError | undefined {
    return this.#closed;
  }

  get endpoint(): Endpoint {
    return this.#settings.endpoint;
  }

  /** How many commands wait for their replies, or to be sent at the end of the tick. */
  get inFlight(): number {
    return this.#pending.length + this.#reads.length + this.#backlog.length;
  }

  /** Whether the socket has stopped taking data: more of it would only pile up here. */
  get isClogged(): boolean {
    return this.#socket.writableNeedDrain || this.#backlog.length > 0;
  }

  /** Whether calls wait for data that is on its way, so that their deadlines do not apply; this connection has its own. */
  isTransferring(now: number): boolean {
    return this.#backlog.isTransferring(now);
  }

  /** When the oldest unanswered command was sent; Infinity if there is none. */
  get awaitedSince(): number {
    return this.#pending.awaitedSince;
  }

  /** Sent with the other commands of this tick, in order. */
  send(args: readonly Argument[], answer: Answer, expected = expectedOf(args)): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    if (this.#backlog.isFull) {
      this.#waitToSend(args, answer, expected);
      return;
    }
    try {
      this.#append(args, answer, expected);
    } catch (thrown) {
      // The caller may be long gone from the stack: only the answer reaches it.
      answer.reject(toError(thrown));
      return;
    }
    this.#flushSoon();
    if (this.#pending.unsent >= MOST_UNSENT) this.#flushNow();
  }

  /**
   * As `send`, and holds back every reply until this one has arrived, also those to earlier commands: they may come from
   * data that must not be served. If they do, `answer` destroys the connection.
   */
  sendDoubting(args: readonly Argument[], answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    this.#held.holdUntil(this.#append(args, answer));
    this.#flushSoon();
  }

  /** Preceded by ASKING, which applies to the next command only: nothing may come between the two. */
  sendAsking(args: readonly Argument[], answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    if (this.#backlog.isFull) {
      this.#wait(sizeOf(args), answer, (connection) => connection.sendAsking(args, answer));
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
    if (this.#backlog.isFull) {
      this.#waitToRead(key, isWatched, answer);
      return;
    }
    this.#reads.add(key, isWatched, answer);
    this.#flushSoon();
  }

  /** MGET, in order with the commands of this tick. Returns false if one command cannot read all keys. */
  readMany(keys: readonly string[], isWatched: boolean, answer: Answer): boolean {
    if (!this.#reads.allows(keys.length)) return false;
    if (this.#closed !== undefined) answer.reject(this.#closed);
    else if (this.#backlog.isFull) {
      this.#waitToReadMany(keys, isWatched, answer);
    } else {
      this.#appendGet("MGET", keys, isWatched, answer);
      this.#flushSoon();
    }
    return true;
  }

  readAgain({ command, keys, isWatched, answer }: UnansweredRead): void {
    if (command === "MGET") this.readMany(keys, isWatched, answer);
    else this.read(keys[0] as string, isWatched, answer);
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

  /**
   * MULTI, the command and EXEC. Resolves with the reply to EXEC: null if a watched key has changed, else a list of one
   * reply.
   */
  async transact(args: readonly Argument[]): Promise<Reply> {
    const answers = await Promise.allSettled([
      this.command("MULTI"),
      new Promise<Reply>((resolve, reject) => this.send(args, { resolve, reject }, QUEUED)),
      this.command("EXEC"),
    ]);
    // The first refusal is the cause of the others.
    const refused = answers.find((answer) => answer.status === "rejected");
    if (refused !== undefined) throw refused.reason;
    return (answers[2] as PromiseFulfilledResult<Reply>).value;
  }

  /** Commands that were sent may still be executed; see `leftChanges`. */
  destroy(reason: XCacheError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#listener.signal?.removeEventListener("abort", this.#abort);
    this.#renewal.cancel();
    const pending = [...this.#held.close(), ...this.#pending.close()];
    endSocket(this.#socket, reason, pending.length > 0);
    // All calls get this one error: one failure of the store, however many they are.
    if (reason instanceof ConnectionError) markLoss(reason);
    const { unanswered } = this.#listener;
    const reads: UnansweredRead[] = [];
    for (const each of pending) {
      const { command, keys, isWatched, sentAt } = each;
      const answer = each.take();
      if (command !== undefined && keys !== undefined)
        reads.push({ answer, sentAt, reason, command, keys, isWatched });
      else {
        this.leftChanges = true;
        answer.reject(reason);
      }
    }
    for (const read of this.#reads.takeUnsent(reason)) reads.push(read);
    const unsent = this.#backlog.close();
    this.#listener.closed(reason);
    if (this.isInUse && unanswered !== undefined) this.#listener.unsent?.(unsent, reason);
    else for (const { answer } of unsent) answer.reject(reason);
    if (this.isInUse && unanswered !== undefined) unanswered(reads);
    else for (const { answer } of reads) answer.reject(reason);
  }

  #feed(bytes: Buffer, length: number): boolean {
    const { oldest } = this.#pending;
    const wasPartial = this.#reader.isPartial;
    let isHeld = true;
    try {
      isHeld = this.#reader.feed(bytes, length);
    } catch (error) {
      this.destroy(notResp(this.endpoint, error, bytes[0]));
    }
    if (this.#reader.isPartial) {
      if (wasPartial && this.#pending.oldest !== oldest) this.#pending.arrived();
      this.#pending.arriving(length, this.#reader.missing);
    } else if (wasPartial || this.#pending.bytes > SMALL_REQUEST) this.#pending.arrived();
    if (this.#backlog.length > 0) this.#drain();
    return isHeld;
  }

  async #greet(login: Login | undefined): Promise<void> {
    const { facts, plain } = await greet(this, login, this.#settings);
    this.greeting = facts;
    this.plain = plain;
    const id = Number(facts.get("id"));
    this.clientId = Number.isNaN(id) ? undefined : id;
    if (login !== undefined) this.#renewal.schedule(login);
  }

  /** AUTH on the open connection. */
  async #logInAgain(): Promise<Login> {
    const settings = this.#settings;
    const login = await inTime(settings.login, settings, this.#listener.signal);
    if (login?.password === undefined)
      throw new ConnectionError("there is no password to renew the login with");
    const { username = DEFAULT_USER, password } = login;
    try {
      await this.command("AUTH", username, password);
    } catch (thrown) {
      throw refused(this.endpoint, thrown, password);
    }
    return login;
  }

  #append(args: readonly Argument[], answer: Answer, expected = expectedOf(args)): PendingCommand {
    const bytes = this.#writer.append(args);
    const pending = new PendingCommand(answer, args[0] as string, expected);
    this.#add(pending, bytes);
    return pending;
  }

  #add(pending: PendingCommand, bytes: number): void {
    pending.bytes = bytes;
    this.#pending.add(pending);
    if (this.#backlog.isDraining) this.#backlog.lastWaited = pending;
  }

  // Apart from their callers: a closure in those would cost every command a context.
  #waitToSend(args: readonly Argument[], answer: Answer, expected: ExpectedReply): void {
    this.#wait(sizeOf(args), answer, (connection) => connection.send(args, answer, expected));
  }

  #waitToRead(key: string, isWatched: boolean, answer: Answer): void {
    this.#wait(key.length, answer, (connection) => connection.read(key, isWatched, answer));
  }

  #waitToReadMany(keys: readonly string[], isWatched: boolean, answer: Answer): void {
    const bytes = keys.reduce((sum, key) => sum + key.length, 0);
    this.#wait(bytes, answer, (connection) => connection.readMany(keys, isWatched, answer));
  }

  #wait(bytes: number, answer: Answer, send: (connection: Connection) => void): void {
    const fail = (error: Error): void => answer.reject(error);
    this.#backlog.add({ since: this.#settings.clock.now(), bytes, answer, send, fail });
  }

  #drain(): void {
    // In order with the commands around them.
    this.#backlog.drain(this, this.#settings.clock.now(), () => this.#reads.drain(this.#appendGet));
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    atEndOfTurn(this.#flush);
  }

  /** In the middle of a turn, whose end remains planned. */
  #flushNow(): void {
    this.#flush();
    this.#flushing = true;
  }

  readonly #flush = (): void => {
    this.#flushing = false;
    if (this.#closed !== undefined) return;
    this.#reads.drain(this.#appendGet);
    const bytes = this.#writer.take();
    if (bytes.length === 0) return;
    this.#pending.sent();
    this.#outgoing.write(bytes);
  };

  readonly #appendGet = (
    command: ReadCommand,
    keys: readonly string[],
    isWatched: boolean,
    answer: Answer,
  ): void => {
    if (isWatched && this.watching === "in")
      this.#append(["CLIENT", "CACHING", "YES"], this.#trackingRequest);
    else if (!isWatched && this.watching === "out" && keys.length >= FEWEST_DECLINED) {
      this.#append(["CLIENT", "CACHING", "NO"], IGNORED);
    }
    const bytes = this.#writer.appendTexts(command, keys);
    const expected = command === "GET" ? RECORD : RECORDS;
    this.#add(new PendingCommand(answer, command, expected, command, keys, isWatched), bytes);
  };

  /** Returns false if no part of the reply is referenced any more. */
  #reply(reply: Reply): unknown {
    const next = this.#pending.shift();
    if (next === undefined) throw new Error("the server sent a reply to no command");
    if (next === this.#backlog.lastWaited) this.#backlog.lastWaited = undefined;
    if (!this.#held.isHolding) return this.#hand(next, reply);
    this.#held.add(next, reply, (command, its) => void this.#hand(command, its));
    return true;
  }

  #hand(next: PendingCommand, reply: Reply): unknown {
    if (reply instanceof ReplyError) {
      this.provenAt = next.sentAt;
      return next.take().reject(reply);
    }
    if (!next.fits(reply)) return this.#violated(next, reply);
    this.provenAt = next.sentAt;
    return next.take().resolve(reply);
  }

  /** Its caller gets this error; the other reads are sent again on the next connection. */
  #violated(pending: PendingCommand, reply: Reply): never {
    const error = unexpectedReply(this.endpoint, pending.name, pending.expected, reply);
    this.destroy(error);
    pending.take().reject(error);
    throw error;
  }
}

const sizeOf = (args: readonly Argument[]): number => args.reduce((sum, { length }) => sum + length, 0);
