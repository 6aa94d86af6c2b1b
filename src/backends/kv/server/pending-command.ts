// Commands that wait for their replies.
import type { Reply } from "../resp/reply.ts";
import type { ExpectedReply } from "./expected-reply.ts";

/** Gets the reply, or the reason why there is none. After a lost connection the command may still have been executed. */
export interface Answer {
  /** Until when its caller waits; it is not sent later. Default: operation_timeout from now. */
  readonly due?: number | undefined;
  /** Returns false if no part of the reply is referenced any more; anything else means it is. */
  resolve(reply: Reply): unknown;
  reject(error: Error): void;
}

export type ReadCommand = "GET" | "MGET";

/** A read that a lost connection left unanswered. */
export interface UnansweredRead {
  readonly answer: Answer;
  /** When it was sent; 0 if it never was. */
  readonly sentAt: number;
  /** Why there is no reply. */
  readonly reason: Error;
  readonly command: ReadCommand;
  readonly keys: readonly string[];
  /** See Connection.read. */
  readonly isWatched: boolean;
}

/**
 * A command in flight. V8 promotes these objects to the old generation early, where they stay for a while after use: so it
 * is a class that drops its references.
 */
export class PendingCommand {
  /** When it was sent; 0 until then. */
  sentAt = 0;
  bytes = 0;
  /** Of a command that reads records, which are decoded in place; undefined for every other. */
  keys: readonly string[] | undefined;
  readonly command: ReadCommand | undefined;
  readonly isWatched: boolean;
  readonly name: string;
  readonly expected: ExpectedReply;
  #answer: Answer | undefined;

  constructor(
    answer: Answer,
    name: string,
    expected: ExpectedReply,
    command?: ReadCommand,
    keys?: readonly string[],
    isWatched = false,
  ) {
    this.#answer = answer;
    this.name = name;
    this.expected = expected;
    this.command = command;
    this.keys = keys;
    this.isWatched = isWatched;
  }

  /** Whether this can be the reply. */
  fits(reply: Reply): boolean {
    return this.expected.fits(reply, this.keys?.length ?? 0);
  }

  /** The answer; once. */
  take(): Answer {
    const answer = this.#answer as Answer;
    this.#answer = undefined;
    this.keys = undefined;
    return answer;
  }
}
