// Commands that wait for their replies, which come in the order of the commands.
import type { Failed } from "../../core/backend.ts";
import type { XCacheError } from "../../core/errors.ts";
import type { MetaReply } from "./meta-reader.ts";
import { refusalIn } from "./reply-error.ts";
import type { Statistics } from "./server-info.ts";

/**
 * A command, or several that are answered together. V8 promotes these objects to the old generation early, where they stay
 * for a while after use: so they are classes that drop their references.
 */
export abstract class PendingCommand {
  /** When it was sent; 0 until then. */
  sentAt = 0;
  bytes = 0;

  /** Takes a reply; returns whether it was the last. Throws if the reply does not belong to this command. */
  abstract take(reply: MetaReply): boolean;
  /** There will be no (more) replies. After a lost connection the command may still have been executed. */
  abstract fail(error: XCacheError): void;
}

/** Codes that may answer a command besides an error: one that reads, */
export const READ: readonly string[] = ["VA", "HD", "EN"];
/** that stores unconditionally, */
export const STORED: readonly string[] = ["HD"];
/** that changes a record conditionally, */
export const CHANGED: readonly string[] = ["HD", "NS", "EX", "NF"];
/** and `mn`. */
export const NOTHING: readonly string[] = ["MN"];

/** A command with one reply. */
export class CommandPending extends PendingCommand {
  readonly #codes: readonly string[];
  #done: ((reply: MetaReply) => void) | undefined;
  #failed: Failed | undefined;

  constructor(codes: readonly string[], done: (reply: MetaReply) => void, failed: Failed) {
    super();
    this.#codes = codes;
    this.#done = done;
    this.#failed = failed;
  }

  take(reply: MetaReply): boolean {
    const refusal = refusalIn(reply);
    if (refusal === undefined && !this.#codes.includes(reply.code))
      throw new Error(`${reply.code} where ${this.#codes.join(", ")} was expected`);
    const [done, failed] = [this.#done, this.#failed];
    this.#release();
    if (refusal === undefined) done?.(reply);
    else failed?.(refusal);
    return true;
  }

  fail(error: XCacheError): void {
    const failed = this.#failed;
    this.#release();
    failed?.(error);
  }

  #release(): void {
    this.#done = undefined;
    this.#failed = undefined;
  }
}

/** Gets the result of a read. The value lies where it arrived: copy what you keep. */
export interface ReadAnswer {
  found(bytes: Buffer, start: number, end: number): void;
  missing(): void;
  failed(error: unknown): void;
}

/** A read that a lost connection left unanswered. */
export interface UnansweredRead {
  readonly key: string;
  readonly answer: ReadAnswer;
  /** When it was sent; 0 if it never was. */
  readonly sentAt: number;
}

/**
 * The reads of a tick. Several are quiet (flag q): the server sends nothing for missing items, marks each found one with its
 * opaque number, and MN ends them.
 */
export class ReadsPending extends PendingCommand {
  #keys: readonly string[];
  #answers: (ReadAnswer | undefined)[];
  #refusal: XCacheError | undefined;
  readonly #isQuiet: boolean;

  constructor(keys: readonly string[], answers: ReadAnswer[]) {
    super();
    this.#keys = keys;
    this.#answers = answers;
    this.#isQuiet = answers.length > 1;
  }

  take(reply: MetaReply): boolean {
    if (reply.code === "VA") {
      const at = this.#isQuiet ? reply.opaque : 0;
      const answer = this.#answers[at];
      if (answer === undefined) throw new Error("a value for no read");
      this.#answers[at] = undefined;
      answer.found(reply.bytes, reply.start, reply.end);
      return !this.#isQuiet;
    }
    const refusal = refusalIn(reply);
    if (refusal !== undefined) {
      // The error does not say which read it answers: none of the silent ones is known to be missing.
      this.#refusal = refusal;
      if (this.#isQuiet) return false;
    } else if (reply.code !== (this.#isQuiet ? "MN" : "EN")) {
      throw new Error(`${reply.code} in answer to mg`);
    }
    this.#endSilent();
    return true;
  }

  fail(error: XCacheError): void {
    this.#refusal = error;
    this.#endSilent();
  }

  /** The reads that were not answered; there will be no more replies. */
  unanswered(): readonly UnansweredRead[] {
    const [keys, answers] = [this.#keys, this.#answers];
    this.#release();
    return answers.flatMap((answer, at) =>
      answer === undefined ? [] : [{ key: keys[at] as string, answer, sentAt: this.sentAt }],
    );
  }

  #release(): void {
    this.#keys = [];
    this.#answers = [];
  }

  #endSilent(): void {
    const answers = this.#answers;
    this.#release();
    for (const answer of answers) {
      if (answer === undefined) continue;
      if (this.#refusal === undefined) answer.missing();
      else answer.failed(this.#refusal);
    }
  }
}

/** `stats`, answered by one line for each value. */
export class StatisticsPending extends PendingCommand {
  readonly #lines = new Map<string, string>();
  readonly #done: (statistics: Statistics) => void;
  readonly #failed: Failed;

  constructor(done: (statistics: Statistics) => void, failed: Failed) {
    super();
    this.#done = done;
    this.#failed = failed;
  }

  take(reply: MetaReply): boolean {
    const { code, text } = reply;
    if (code === "STAT") {
      const space = text.indexOf(" ");
      if (space > 0) this.#lines.set(text.slice(0, space), text.slice(space + 1));
      return false;
    }
    const refusal = refusalIn(reply);
    if (refusal !== undefined) this.#failed(refusal);
    else if (code === "END" || code === "RESET") this.#done(this.#lines);
    else throw new Error(`${code} in answer to stats`);
    return true;
  }

  fail(error: XCacheError): void {
    this.#failed(error);
  }
}
