// The replies of a server, as parsed.

/** The arguments that a server echoes for an unknown command; they contain the password if it was a login. */
const ECHOED_ARGUMENTS = /, with args beginning with.*$/s;

/** What Redis 6 and older put before an error in a script. */
const IN_SCRIPT = /^ERR Error running script \(call to \w+\): (?:@\w+: ?\d+: )+-?(?=[A-Z]{2,} )/;

/** An error reply; `code` is its first word, such as MOVED, or that of the error in a script. */
export class ReplyError extends Error {
  readonly code: string;

  constructor(message: string) {
    super(message.replace(ECHOED_ARGUMENTS, ""));
    this.name = "ReplyError";
    this.code = /^[A-Z]+/.exec(message.replace(IN_SCRIPT, ""))?.[0] ?? "ERR";
  }
}

/** A bulk string in its chunk, for a receiver that decodes it immediately; cheaper than a Buffer view. */
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
