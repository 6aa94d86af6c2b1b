// What a server answers, as it is read.

/** What a server repeats of a command that it does not know: the password where that was a login. */
const REPEATED = /, with args beginning with.*$/s;

/** An error the server answered with; `code` is its first word, such as MOVED. */
export class ReplyError extends Error {
  readonly code: string;

  constructor(message: string) {
    super(message.replace(REPEATED, ""));
    this.name = "ReplyError";
    this.code = /^[A-Z]+/.exec(message)?.[0] ?? "ERR";
  }
}

/** A bulk string where it arrived, for somebody who looks at it at once: views are dear. */
export class Span {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }

  toString(): string {
    return this.bytes.toString("utf8", this.start, this.end);
  }
}

export type Reply = Buffer | Span | string | number | boolean | bigint | null | ReplyError | readonly Reply[];
