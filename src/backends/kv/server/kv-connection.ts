// A reconnecting connection to one server, and the commands sent over it.
import type { XCacheError } from "../../../core/errors.ts";
import { ReconnectingConnection } from "../../wire/reconnecting.ts";
import type { Reply } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Connection } from "./connection.ts";

/** The answer of a caller that can try another server. */
export interface RetryableAnswer extends Answer {
  /** Called in place of `reject` if the command was certainly not sent. */
  unsent?(error: XCacheError): void;
}

/** Waiting is in methods of its own: a closure in the methods that send would cost every command a context. */
export class KvConnection extends ReconnectingConnection<Connection> {
  send(args: readonly Argument[], answer: RetryableAnswer): void {
    const { connection } = this;
    if (connection !== undefined) connection.send(args, answer);
    else this.#sendWhenUp(args, answer);
  }

  /** See Connection.sendAsking. */
  sendAsking(args: readonly Argument[], answer: RetryableAnswer): void {
    this.#whenUp(answer, (connection) => connection.sendAsking(args, answer));
  }

  /** GET; see Connection.read. */
  read(key: string, isWatched: boolean, answer: RetryableAnswer): void {
    const { connection } = this;
    if (connection !== undefined) connection.read(key, isWatched, answer);
    else this.#readWhenUp(key, isWatched, answer);
  }

  /** MGET; see Connection.readMany. */
  readMany(keys: readonly string[], isWatched: boolean, answer: Answer): boolean {
    return this.connection?.readMany(keys, isWatched, answer) ?? false;
  }

  command(...args: Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(args, { resolve, reject }));
  }

  #sendWhenUp(args: readonly Argument[], answer: RetryableAnswer): void {
    this.#whenUp(answer, (connection) => connection.send(args, answer));
  }

  #readWhenUp(key: string, isWatched: boolean, answer: RetryableAnswer): void {
    this.#whenUp(answer, (connection) => connection.read(key, isWatched, answer));
  }

  #whenUp(answer: RetryableAnswer, run: (connection: Connection) => void): void {
    const failed = (error: unknown): void => {
      if (answer.unsent === undefined) answer.reject(error as XCacheError);
      else answer.unsent(error as XCacheError);
    };
    this.whenUp(run, failed, answer.due);
  }
}
