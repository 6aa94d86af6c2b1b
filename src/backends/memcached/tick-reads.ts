// The reads of one tick, before they are sent. Reads of the same own record are shared.
import type { ReadAnswer } from "./pending-command.ts";

/** In the names of the library's own records, which many callers read at once; see core/keys.ts. */
const OWN_MARK = "!";

export class TickReads {
  readonly keys: string[] = [];
  /** In the order of `keys`. */
  readonly answers: ReadAnswer[] = [];
  /** The index of each own record. Entries are not looked up: that would cost more than sharing saves. */
  #own: Map<string, number> | undefined;

  add(key: string, answer: ReadAnswer): void {
    if (key.includes(OWN_MARK)) {
      const at = this.#own?.get(key);
      if (at !== undefined) {
        this.#join(at, answer);
        return;
      }
      this.#own ??= new Map();
      this.#own.set(key, this.keys.length);
    }
    this.keys.push(key);
    this.answers.push(answer);
  }

  /** The pending read of an own record. */
  of(key: string): ReadAnswer | undefined {
    const at = this.#own?.get(key);
    return at === undefined ? undefined : this.answers[at];
  }

  #join(at: number, answer: ReadAnswer): void {
    const present = this.answers[at] as ReadAnswer;
    if (present instanceof SharedRead) present.add(answer);
    else this.answers[at] = new SharedRead(present, answer);
  }
}

/** Several reads of one key in one tick. */
class SharedRead implements ReadAnswer {
  readonly #answers: ReadAnswer[];

  constructor(...answers: ReadAnswer[]) {
    this.#answers = answers;
  }

  add(answer: ReadAnswer): void {
    this.#answers.push(answer);
  }

  found(bytes: Buffer, start: number, end: number): void {
    for (const answer of this.#answers) answer.found(bytes, start, end);
  }

  missing(): void {
    for (const answer of this.#answers) answer.missing();
  }

  failed(error: unknown): void {
    for (const answer of this.#answers) answer.failed(error);
  }
}
