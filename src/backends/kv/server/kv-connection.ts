// A reconnecting connection to one server, and the commands sent over it.
import type { Failed } from "../../../core/backend.ts";
import type { XCacheError } from "../../../core/errors.ts";
import { ReconnectingConnection } from "../../wire/reconnecting.ts";
import type { Reply } from "../resp/reply.ts";
import type { Argument } from "../resp/writer.ts";
import type { Answer, Connection, UnansweredRead, UnsentCommand } from "./connection.ts";

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

  /** Sends reads again that a lost connection left unanswered, within their deadlines. */
  readAgain(reads: readonly UnansweredRead[], now: number, operationTimeoutMs: number): void {
    for (const read of reads) {
      const { answer, sentAt, reason } = read;
      const retryable: RetryableAnswer = answer;
      const due = answer.due ?? (sentAt || now) + operationTimeoutMs;
      // A caller that can try another server decides for itself.
      if (retryable.unsent !== undefined) retryable.unsent(reason as XCacheError);
      else if (due <= now) answer.reject(reason);
      else {
        const again = { ...read, answer: answer.due === undefined ? new RepeatedRead(answer, due) : answer };
        this.whenUp((connection) => connection.readAgain(again), reject(answer), due);
      }
    }
  }

  /** Sends commands that a lost connection had not sent yet, within their deadlines. */
  sendUnsent(commands: readonly UnsentCommand[], reason: XCacheError, now: number, timeoutMs: number): void {
    for (const { answer, since, send } of commands) {
      const retryable: RetryableAnswer = answer;
      const due = answer.due ?? since + timeoutMs;
      if (retryable.unsent !== undefined) retryable.unsent(reason);
      else if (due <= now) answer.reject(reason);
      else this.whenUp(send, reject(answer), due);
    }
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
    this.whenUp(run, failed, answer.due, answer.unsent !== undefined);
  }
}

/** Keeps the deadline of a read over several lost connections. */
class RepeatedRead implements Answer {
  readonly due: number;
  readonly #answer: Answer;

  constructor(answer: Answer, due: number) {
    this.#answer = answer;
    this.due = due;
  }

  resolve(reply: Reply): unknown {
    return this.#answer.resolve(reply);
  }

  reject(error: Error): void {
    this.#answer.reject(error);
  }
}

const reject =
  (answer: Answer): Failed =>
  (error) =>
    answer.reject(error as XCacheError);
