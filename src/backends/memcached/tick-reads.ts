// The reads of one tick, before any of them is sent. Whoever reads the same record as somebody else shares the read.
import type { ReadAnswer } from "./pending-command.ts";

/** The library's own records are read by many at once, and their names have it; see core/keys.ts. */
const OWN_MARK = "!";

export class TickReads {
  readonly keys: string[] = [];
  /** In the order of `keys`. */
  readonly answers: ReadAnswer[] = [];
  /** Where an own record is among them. Looking for entries would cost more than it spares. */
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

  /** Who reads an own record. */
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

/** Several who read one key in one tick. */
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
