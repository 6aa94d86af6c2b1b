// One connection to one server: pipelined commands, the reads of a tick together, a deadline for every reply.
import type { Socket } from "node:net";
import type { HostPort } from "../../core/address/address.ts";
import type { XCacheError } from "../../core/errors.ts";
import { atEndOfTurn } from "../../core/event-loop.ts";
import { lost, notAnswered } from "../wire/connection-error.ts";
import type { ConnectionOwner } from "../wire/reconnecting.ts";
import { ReplyQueue } from "../wire/reply-queue.ts";
import { openSocket, type SocketSettings } from "../wire/socket.ts";
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
} from "./pending-command.ts";
import { notMemcached, tooLarge } from "./reply-error.ts";
import { nameOf } from "./ring.ts";
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
  /** The CAS of records that were swapped in here; void with the connection, since a restarted server counts from 1. */
  readonly cas = new CasMemory();
  readonly #settings: ConnectionSettings;
  readonly #owner: ConnectionOwner;
  readonly #writer: MetaWriter;
  readonly #socket: Socket;
  readonly #pending: ReplyQueue<PendingCommand>;
  #reads = new TickReads();
  #flushing = false;
  #closed: XCacheError | undefined;
  readonly #abort = (): void => this.destroy(this.#owner.signal?.reason);

  private constructor(settings: ConnectionSettings, owner: ConnectionOwner, socket: Socket) {
    this.#settings = settings;
    this.#owner = owner;
    this.#writer = new MetaWriter(settings.keys);
    this.#socket = socket;
    const reader = new MetaReader((reply) => this.#reply(reply));
    const { name } = this;
    const { clock, operationTimeoutMs } = settings;
    this.#pending = new ReplyQueue({
      clock,
      limitMs: operationTimeoutMs,
      holdsProcess: true,
      late: () => this.destroy(notAnswered(name, operationTimeoutMs)),
    });
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.feed(chunk);
      } catch (error) {
        this.destroy(notMemcached(name, error));
      }
    });
    socket.on("error", (error) => this.destroy(lost(name, error)));
    socket.on("close", () => this.destroy(lost(name, undefined)));
    owner.signal?.addEventListener("abort", this.#abort);
    // It may have been aborted since the socket was opened.
    if (owner.signal?.aborted) this.#abort();
  }

  static async open(settings: ConnectionSettings, owner: ConnectionOwner): Promise<Connection> {
    const name = nameOf(settings.endpoint);
    const socket = await openSocket(settings, {
      name,
      signal: owner.signal,
      lost: (cause) => lost(name, cause),
    });
    return new Connection(settings, owner, socket);
  }

  get name(): string {
    return nameOf(this.#settings.endpoint);
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  /** How many commands wait for their replies. */
  get inFlight(): number {
    return this.#pending.length;
  }

  /** Whether the socket has stopped taking data: more of it would only pile up here. */
  get isClogged(): boolean {
    return this.#socket.writableNeedDrain;
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
    this.#writer.command(verb, key, flags);
    this.#append(pending);
  }

  /** ms. A record that is too large for the server is refused here. */
  store(key: string, flags: string, data: Uint8Array | SelfWriting, pending: PendingCommand): void {
    if (this.#refuses(pending)) return;
    const { largestRecord } = this.info;
    if (data.length > largestRecord) {
      pending.fail(tooLarge(data.length, largestRecord));
      return;
    }
    this.#writer.store(key, flags, data);
    this.#append(pending);
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
    this.#socket.destroy();
    const pending = this.#pending.close();
    const { answers } = this.#reads;
    this.#reads = new TickReads();
    for (const each of pending) each.fail(reason);
    for (const answer of answers) answer.failed(reason);
    this.#owner.closed(reason);
  }

  #refuses(pending: PendingCommand): boolean {
    if (this.#closed === undefined) return false;
    pending.fail(this.#closed);
    return true;
  }

  #line(text: string, pending: PendingCommand): void {
    if (this.#refuses(pending)) return;
    this.#writer.line(text);
    this.#append(pending);
  }

  #append(pending: PendingCommand): void {
    this.#pending.add(pending);
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    atEndOfTurn(this.#flush);
  }

  readonly #flush = (): void => {
    if (this.#closed !== undefined) return;
    if (this.#reads.keys.length > 0) this.#appendReads();
    this.#flushing = false;
    this.#pending.sent();
    this.#socket.write(this.#writer.take());
  };

  #appendReads(): void {
    const { keys, answers } = this.#reads;
    this.#reads = new TickReads();
    for (let from = 0; from < keys.length; from += MOST_READ_TOGETHER) {
      const end = Math.min(from + MOST_READ_TOGETHER, keys.length);
      if (end - from === 1) this.#writer.command("mg", keys[from] as string, READ_ONE);
      else {
        for (let at = from; at < end; at++)
          this.#writer.command("mg", keys[at] as string, READ_FLAGS[at - from] as string);
        this.#writer.line("mn");
      }
      this.#append(new ReadsPending(end - from === keys.length ? answers : answers.slice(from, end)));
    }
  }

  #reply(reply: MetaReply): void {
    const next = this.#pending.oldest;
    if (next === undefined) throw new Error("a reply to no command");
    this.provenAt = next.sentAt;
    // The answer may have closed the connection.
    if (next.take(reply) && this.#closed === undefined) this.#pending.shift();
  }
}

/** A copy of the reader's reusable fields; the value stays where it arrived, in memory that is not written again. */
function kept({ code, text, bytes, start, end, opaque, cas }: MetaReply): MetaReply {
  return { code, text, bytes, start, end, opaque, cas };
}
