// The reads of one tick: they leave together, as few commands as possible.
import type { Reply } from "../resp/reply.ts";
import type { Answer, ReadCommand, UnansweredRead } from "./pending-command.ts";

/** Keys per MGET at most, so that none keeps the server busy for long. */
const MOST_READ_TOGETHER = 512;

/** Takes one command that reads `keys`. */
type Append = (command: ReadCommand, keys: readonly string[], isWatched: boolean, answer: Answer) => void;

export class ReadBatch {
  readonly #readsTogether: boolean;
  #unwatched = new Reads();
  #watched = new Reads();

  /** `readsTogether`: whether one command may read several keys. */
  constructor(readsTogether: boolean) {
    this.#readsTogether = readsTogether;
  }

  get length(): number {
    return this.#unwatched.keys.length + this.#watched.keys.length;
  }

  /** Whether one command can read this many keys. */
  allows(keys: number): boolean {
    return this.#readsTogether && keys <= MOST_READ_TOGETHER;
  }

  add(key: string, isWatched: boolean, answer: Answer): void {
    const reads = isWatched ? this.#watched : this.#unwatched;
    reads.keys.push(key);
    reads.answers.push(answer);
  }

  /** Passes everything on as commands. */
  drain(append: Append): void {
    const [unwatched, watched] = [this.#unwatched, this.#watched];
    if (unwatched.keys.length > 0) {
      this.#unwatched = new Reads();
      this.#appendAll(unwatched, false, append);
    }
    if (watched.keys.length > 0) {
      this.#watched = new Reads();
      this.#appendAll(watched, true, append);
    }
  }

  /** The connection was lost before any of them was sent. */
  *takeUnsent(reason: Error): Iterable<UnansweredRead> {
    const [unwatched, watched] = [this.#unwatched, this.#watched];
    this.#unwatched = new Reads();
    this.#watched = new Reads();
    for (const { keys, answers } of [unwatched, watched]) {
      const isWatched = keys === watched.keys;
      for (const [at, answer] of answers.entries())
        yield { answer, sentAt: 0, reason, command: "GET", keys: [keys[at] as string], isWatched };
    }
  }

  #appendAll({ keys, answers }: Reads, isWatched: boolean, append: Append): void {
    if (!this.#readsTogether || keys.length === 1) {
      for (const [at, key] of keys.entries()) append("GET", [key], isWatched, answers[at] as Answer);
      return;
    }
    for (let from = 0; from < keys.length; from += MOST_READ_TOGETHER) {
      const asked = answers.slice(from, from + MOST_READ_TOGETHER);
      const some = keys.slice(from, from + MOST_READ_TOGETHER);
      append("MGET", some, isWatched, new ReadTogether(asked));
    }
  }
}

class Reads {
  readonly keys: string[] = [];
  readonly answers: Answer[] = [];
}

/** Hands every read of one MGET its part of the reply. */
class ReadTogether implements Answer {
  #answers: readonly Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = answers;
  }

  resolve(replies: Reply): boolean {
    const answers = this.#take();
    let isReferenced = false;
    for (let at = 0; at < answers.length; at++) {
      if ((answers[at] as Answer).resolve((replies as Reply[])[at] as Reply) !== false) isReferenced = true;
    }
    return isReferenced;
  }

  reject(error: Error): void {
    for (const answer of this.#take()) answer.reject(error);
  }

  #take(): readonly Answer[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }
}
