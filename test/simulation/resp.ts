// The bytes between a simulated client and server: commands are parsed, replies and pushes written, both as RESP3.

const CR = 13;
const LF = 10;
const ZERO = 48;

/** The commands in what a client wrote at once. A client writes whole commands only. */
export function commandsIn(bytes: Uint8Array): Buffer[][] {
  const text = Buffer.from(bytes);
  const commands: Buffer[][] = [];
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (at++; text[at] !== CR; at++) value = value * 10 + (text[at] as number) - ZERO;
    at += 2;
    return value;
  };
  while (at < text.length) {
    const args: Buffer[] = [];
    for (let left = number(); left > 0; left--) {
      const length = number();
      args.push(text.subarray(at, at + length));
      at += length + 2;
    }
    commands.push(args);
  }
  return commands;
}

export type ReplyBytes = string | Buffer;

export const OK = "+OK\r\n";
export const NULL = "_\r\n";
export const number = (value: number): string => `:${value}\r\n`;
export const error = (message: string): string => `-${message}\r\n`;
export const text = (value: string): string => `$${value.length}\r\n${value}\r\n`;

export function bulk(bytes: Buffer | undefined): ReplyBytes {
  if (bytes === undefined) return NULL;
  const head = `$${bytes.length}\r\n`;
  const end = head.length + bytes.length;
  const reply = Buffer.allocUnsafe(end + 2);
  reply.write(head, "latin1");
  reply.set(bytes, head.length);
  reply[end] = CR;
  reply[end + 1] = LF;
  return reply;
}

export function list(items: readonly ReplyBytes[], mark = "*"): ReplyBytes {
  const head = `${mark}${items.length}\r\n`;
  if (items.every((item) => typeof item === "string")) return head + items.join("");
  return Buffer.concat([head, ...items].map(bytesOf));
}

/** What the server sends when a tracked key has changed. */
export const invalidation = (key: string): ReplyBytes => list([text("invalidate"), list([text(key)])], ">");

/** What it sends when all its data was replaced. */
export const EMPTIED: ReplyBytes = list([text("invalidate"), NULL], ">");

export const bytesOf = (reply: ReplyBytes): Buffer =>
  typeof reply === "string" ? Buffer.from(reply, "latin1") : reply;
