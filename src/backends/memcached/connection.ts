// One connection to one server: pipelined commands, the reads of a tick together, a deadline for every reply.
import type { Socket } from "node:net";
import { type HostPort, nameOf } from "../../core/address/address.ts";
import { ConnectionError, type XCacheError } from "../../core/errors.ts";
import { atEndOfTurn } from "../../core/event-loop.ts";
import { markLoss } from "../../core/resilience/store-failure.ts";
import { Backlog } from "../wire/backlog.ts";
import { lost, notAnswered } from "../wire/connection-error.ts";
import { Outgoing } from "../wire/outgoing.ts";
import type { ConnectionOwner } from "../wire/reconnecting.ts";
import { ReplyQueue, SMALL_REQUEST } from "../wire/reply-queue.ts";
import { endSocket, openSocket, type SocketOwner, type SocketSettings } from "../wire/socket.ts";
import { CasMemory } from "./cas-memory.ts";
import type { ItemKeys } from "./item-key.ts";
import { MetaReader, type MetaReply } from "./meta-reader.ts";
import { MetaWriter, type SelfWriting } from "./meta-writer.ts";
import {
  CHANGED,
  CommandPending,
  NOTHING,
  type PendingCommand,
  READ,
  type ReadAnswer,
  ReadsPending,
  StatisticsPending,
  type UnansweredRead,
} from "./pending-command.ts";
import { notMemcached, tooLarge } from "./reply-error.ts";
import { NO_INFO, type Statistics } from "./server-info.ts";
import { TickReads } from "./tick-reads.ts";

export interface ConnectionSettings extends SocketSettings {
  readonly endpoint: HostPort;
  readonly operationTimeoutMs: number;
  readonly keys: ItemKeys;
}

/** Reads per batch at most. */
const MOST_READ_TOGETHER = 512;
const READ_ONE = " b v";
const READ_FLAGS = Array.from({ length: MOST_READ_TOGETHER }, (_, at) => ` b v q O${at}`);

export class Connection {
  /** When the latest answered command was sent. */
  provenAt = 0;
  /** What the server reports about itself; set before any record is sent. */
  info = NO_INFO;
  /** Gets the reads that were not answered when the connection is lost. Absent: they fail. */
  unanswered: ((reads: readonly UnansweredRead[], reason: XCacheError) => void) | undefined;
  /** The CAS of records that were swapped in here; void with the connection, since a restarted server counts from 1. */
  readonly cas = new CasMemory();
  readonly #settings: ConnectionSettings;
  readonly #owner: ConnectionOwner;
  readonly #writer: MetaWriter;
  readonly #socket: Socket;
  readonly #pending: ReplyQueue<PendingCommand>;
  #reads = new TickReads();
  readonly #outgoing: Outgoing;
  readonly #backlog: Backlog<Connection, PendingCommand>;
  #flushing = false;
  #closed: XCacheError | undefined;
  readonly #reader = new MetaReader((reply) => this.#reply(reply));
  readonly #abort = (): void => this.destroy(this.#owner.signal?.reason);

  private constructor(settings: ConnectionSettings, owner: ConnectionOwner, socket: Socket) {
    this.#settings = settings;
    this.#owner = owner;
    this.#writer = new MetaWriter(settings.keys);
    this.#socket = socket;
    const { name } = this;
    const { clock, operationTimeoutMs } = settings;
    this.#pending = new ReplyQueue({
      clock,
      limitMs: operationTimeoutMs,
      holdsProcess: true,
      late: () => this.destroy(notAnswered(name, operationTimeoutMs)),
    });
    this.#backlog = new Backlog(this.#pending, operationTimeoutMs);
    this.#outgoing = new Outgoing(socket, () => this.#pending.moved());
    socket.on("error", (error) => this.destroy(lost(name, error)));
    socket.on("close", () => this.destroy(lost(name, undefined)));
    owner.signal?.addEventListener("abort", this.#abort);
    // It may have been aborted since the socket was opened.
    if (owner.signal?.aborted) this.#abort();
  }

  static async open(settings: ConnectionSettings, owner: ConnectionOwner): Promise<Connection> {
    const name = nameOf(settings.endpoint);
    const socketOwner: SocketOwner = {
      name,
      signal: owner.signal,
      // Replaced before anything arrives: the server only answers.
      intake: () => false,
      lost: (cause) => lost(name, cause),
    };
    const socket = await openSocket(settings, socketOwner);
    const connection = new Connection(settings, owner, socket);
    socketOwner.intake = (bytes, length) => connection.#feed(bytes, length);
    return connection;
  }

  get name(): string {
    return nameOf(this.#settings.endpoint);
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  /** How many commands wait for their replies. */
  get inFlight(): number {
    return this.#pending.length + this.#backlog.length;
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

  /** Sent after the other commands of this tick, so that a read sees every write made before it. */
  read(key: string, answer: ReadAnswer): void {
    if (this.#closed !== undefined) {
      answer.failed(this.#closed);
      return;
    }
    if (this.#backlog.isFull) {
      this.#waitToRead(key, answer);
      return;
    }
    this.#reads.add(key, answer);
    this.#flushSoon();
  }

  /** The pending read of one of the library's own records in this tick, not yet sent. */
  reading(key: string): ReadAnswer | undefined {
    return this.#reads.of(key);
  }

  /** mg or md; sent with the other commands of this tick, in order. */
  send(verb: "mg" | "md", key: string, flags: string, pending: PendingCommand): void {
    if (this.#refuses(pending)) return;
    if (this.#backlog.isFull) {
      this.#waitToSend(verb, key, flags, pending);
      return;
    }
    const before = this.#writer.length;
    this.#writer.command(verb, key, flags);
    this.#append(pending, before);
  }

  /** ms. A record that is too large for the server is refused here. */
  store(key: string, flags: string, data: Uint8Array | SelfWriting, pending: PendingCommand): void {
    if (this.#refuses(pending)) return;
    const { largestRecord } = this.info;
    if (data.length > largestRecord) {
      pending.fail(tooLarge(data.length, largestRecord));
      return;
    }
    if (this.#backlog.isFull) {
      this.#waitToStore(key, flags, data, pending);
      return;
    }
    const before = this.#writer.length;
    this.#writer.store(key, flags, data);
    this.#append(pending, before);
  }

  command(verb: "mg" | "md", key: string, flags: string): Promise<MetaReply> {
    return new Promise((resolve, reject) =>
      this.send(
        verb,
        key,
        flags,
        new CommandPending(verb === "mg" ? READ : CHANGED, (reply) => resolve(kept(reply)), reject),
      ),
    );
  }

  /** As `store` with a condition among the flags; resolves with the reply. */
  stored(key: string, flags: string, data: Uint8Array | SelfWriting): Promise<MetaReply> {
    return new Promise((resolve, reject) =>
      this.store(key, flags, data, new CommandPending(CHANGED, (reply) => resolve(kept(reply)), reject)),
    );
  }

  /** Resolves when everything that was sent before has been answered. */
  ping(): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#line("mn", new CommandPending(NOTHING, () => resolve(), reject)),
    );
  }

  /** `what`: an argument of `stats`, such as "settings". */
  statistics(what = ""): Promise<Statistics> {
    return new Promise((resolve, reject) =>
      this.#line(`stats${what && ` ${what}`}`, new StatisticsPending(resolve, reject)),
    );
  }

  /** Commands that were sent may still be executed; only a closed socket guarantees that none follows them. */
  destroy(reason: XCacheError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#owner.signal?.removeEventListener("abort", this.#abort);
    const pending = this.#pending.close();
    endSocket(this.#socket, reason, pending.length > 0);
    // All calls get this one error: one failure of the store, however many they are.
    if (reason instanceof ConnectionError) markLoss(reason);
    const reads: UnansweredRead[] = [];
    for (const each of pending) {
      if (each instanceof ReadsPending) reads.push(...each.unanswered());
      else each.fail(reason);
    }
    const { keys, answers } = this.#reads;
    for (const [at, answer] of answers.entries()) reads.push({ key: keys[at] as string, answer, sentAt: 0 });
    this.#reads = new TickReads();
    const unsent = this.#backlog.close();
    this.#owner.closed(reason);
    // Not sent again: a CAS is void with its connection.
    for (const each of unsent) each.fail(reason);
    if (this.unanswered !== undefined) this.unanswered(reads, reason);
    else for (const { answer } of reads) answer.failed(reason);
  }

  #refuses(pending: PendingCommand): boolean {
    if (this.#closed === undefined) return false;
    pending.fail(this.#closed);
    return true;
  }

  #line(text: string, pending: PendingCommand): void {
    if (this.#refuses(pending)) return;
    if (this.#backlog.isFull) {
      this.#waitFor(text.length, pending, (connection) => connection.#line(text, pending));
      return;
    }
    const before = this.#writer.length;
    this.#writer.line(text);
    this.#append(pending, before);
  }

  /** `before`: the length of the output without its command. */
  #append(pending: PendingCommand, before: number): void {
    pending.bytes = this.#writer.length - before;
    this.#pending.add(pending);
    if (this.#backlog.isDraining) this.#backlog.lastWaited = pending;
    this.#flushSoon();
  }

  // Apart from their callers: a closure in those would cost every command a context.
  #waitToSend(verb: "mg" | "md", key: string, flags: string, pending: PendingCommand): void {
    this.#waitFor(key.length, pending, (connection) => connection.send(verb, key, flags, pending));
  }

  #waitToStore(key: string, flags: string, data: Uint8Array | SelfWriting, pending: PendingCommand): void {
    this.#waitFor(data.length, pending, (connection) => connection.store(key, flags, data, pending));
  }

  #waitToRead(key: string, answer: ReadAnswer): void {
    this.#wait(
      key.length,
      (connection) => connection.read(key, answer),
      (error) => answer.failed(error),
    );
  }

  #waitFor(bytes: number, pending: PendingCommand, send: (connection: Connection) => void): void {
    this.#wait(bytes, send, (error) => pending.fail(error));
  }

  #wait(bytes: number, send: (connection: Connection) => void, fail: (error: XCacheError) => void): void {
    this.#backlog.add({ since: this.#settings.clock.now(), bytes, send, fail });
  }

  #drain(): void {
    // In order with the commands around them.
    this.#backlog.drain(this, this.#settings.clock.now(), () => this.#appendReads());
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    atEndOfTurn(this.#flush);
  }

  readonly #flush = (): void => {
    if (this.#closed !== undefined) return;
    this.#appendReads();
    this.#flushing = false;
    this.#pending.sent();
    this.#outgoing.write(this.#writer.take());
  };

  #appendReads(): void {
    const { keys, answers } = this.#reads;
    if (keys.length === 0) return;
    this.#reads = new TickReads();
    for (let from = 0; from < keys.length; from += MOST_READ_TOGETHER) {
      const end = Math.min(from + MOST_READ_TOGETHER, keys.length);
      const before = this.#writer.length;
      if (end - from === 1) this.#writer.command("mg", keys[from] as string, READ_ONE);
      else {
        for (let at = from; at < end; at++)
          this.#writer.command("mg", keys[at] as string, READ_FLAGS[at - from] as string);
        this.#writer.line("mn");
      }
      const isAll = end - from === keys.length;
      this.#append(
        new ReadsPending(isAll ? keys : keys.slice(from, end), isAll ? answers : answers.slice(from, end)),
        before,
      );
    }
  }

  #feed(bytes: Buffer, length: number): boolean {
    const reader = this.#reader;
    const { oldest } = this.#pending;
    const wasPartial = reader.isPartial;
    let isHeld = true;
    try {
      isHeld = reader.feed(bytes, length);
    } catch (error) {
      this.destroy(notMemcached(this.name, error));
    }
    const isSame = oldest !== undefined && this.#pending.oldest === oldest;
    if (isSame || reader.isPartial) {
      if (!isSame) this.#pending.arrived();
      this.#pending.arriving(length, reader.missing);
    } else if (wasPartial || this.#pending.bytes > SMALL_REQUEST) this.#pending.arrived();
    if (this.#backlog.length > 0) this.#drain();
    return isHeld;
  }

  #reply(reply: MetaReply): void {
    const next = this.#pending.oldest;
    if (next === undefined) throw new Error("a reply to no command");
    this.provenAt = next.sentAt;
    // The answer may have closed the connection.
    if (!next.take(reply) || this.#closed !== undefined) return;
    if (next === this.#backlog.lastWaited) this.#backlog.lastWaited = undefined;
    this.#pending.shift();
  }
}

/** A copy of the reader's reusable fields; the value stays where it arrived, in memory that is not written again. */
function kept({ code, text, bytes, start, end, opaque, cas }: MetaReply): MetaReply {
  return { code, text, bytes, start, end, opaque, cas };
}
