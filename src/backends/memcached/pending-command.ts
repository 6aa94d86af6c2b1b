// What waits for replies on a connection. Replies come in the order of the commands.
import type { Failed } from "../../core/backend.ts";
import type { XCacheError } from "../../core/errors.ts";
import type { MetaReply } from "./meta-reader.ts";
import { refusalIn } from "./reply-error.ts";
import type { Statistics } from "./server-info.ts";

/**
 * A command, or several that are answered together. V8 soon keeps objects of this kind among the old ones, where they
 * stay for a while after they have served: so they are classes, and let go of what they refer to.
 */
export abstract class PendingCommand {
  /** When its tick's commands left; 0 while they are waiting to. */
  sentAt = 0;

  /** Takes a reply; returns whether it was the last. Throws on one that does not belong here. */
  abstract take(reply: MetaReply): boolean;
  /** There will be no (more) replies. After a lost connection a command may still have been carried out. */
  abstract fail(error: XCacheError): void;
}

/** What may answer a command besides a refusal: one that reads, */
export const READ: readonly string[] = ["VA", "HD", "EN"];
/** that stores whatever stands there, */
export const STORED: readonly string[] = ["HD"];
/** that changes something under a condition, */
export const CHANGED: readonly string[] = ["HD", "NS", "EX", "NF"];
/** and `mn`. */
export const NOTHING: readonly string[] = ["MN"];

/** Told the one reply to a command; a refusal is an error. */
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
    this.#letGo();
    if (refusal === undefined) done?.(reply);
    else failed?.(refusal);
    return true;
  }

  fail(error: XCacheError): void {
    const failed = this.#failed;
    this.#letGo();
    failed?.(error);
  }

  #letGo(): void {
    this.#done = undefined;
    this.#failed = undefined;
  }
}

/** Whoever reads a key. The value lies where it arrived: copy what is kept. */
export interface ReadAnswer {
  found(bytes: Buffer, start: number, end: number): void;
  missing(): void;
  failed(error: unknown): void;
}

/**
 * The reads of a tick. Several are quiet (flag q): a server says nothing of what it does not have, numbers what it has,
 * and MN ends them.
 */
export class ReadsPending extends PendingCommand {
  #answers: (ReadAnswer | undefined)[];
  #refusal: XCacheError | undefined;
  readonly #isQuiet: boolean;

  constructor(answers: ReadAnswer[]) {
    super();
    this.#answers = answers;
    this.#isQuiet = answers.length > 1;
  }

  take(reply: MetaReply): boolean {
    if (reply.code === "VA") {
      const at = this.#isQuiet ? reply.opaque : 0;
      const answer = this.#answers[at];
      if (answer === undefined) throw new Error("a value that nobody asked for");
      this.#answers[at] = undefined;
      answer.found(reply.bytes, reply.start, reply.end);
      return !this.#isQuiet;
    }
    const refusal = refusalIn(reply);
    if (refusal !== undefined) {
      // Which of them was refused is not said: none of those that are silent is known to be missing.
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

  #endSilent(): void {
    const answers = this.#answers;
    this.#answers = [];
    for (const answer of answers) {
      if (answer === undefined) continue;
      if (this.#refusal === undefined) answer.missing();
      else answer.failed(this.#refusal);
    }
  }
}

/** The lines that answer `stats`. */
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
