// The bytes between a simulated client and server: commands are parsed, replies and pushes written, both as RESP3.
//
// On the side of the server they are strings with a character for each byte, which are cheaper than buffers of this size.

const CR = 13;
const ZERO = 48;

/** The commands in what a client wrote at once. A client writes whole commands only. */
export function commandsIn(bytes: Uint8Array): string[][] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  const commands: string[][] = [];
  let at = 0;
  const number = (): number => {
    let value = 0;
    for (at++; ; at++) {
      const digit = text.charCodeAt(at);
      if (digit === CR) break;
      value = value * 10 + digit - ZERO;
    }
    at += 2;
    return value;
  };
  while (at < text.length) {
    const args: string[] = [];
    for (let left = number(); left > 0; left--) {
      const length = number();
      args.push(text.slice(at, at + length));
      at += length + 2;
    }
    commands.push(args);
  }
  return commands;
}

export const OK = "+OK\r\n";
export const NULL = "_\r\n";
export const number = (value: number): string => `:${value}\r\n`;
export const error = (message: string): string => `-${message}\r\n`;
export const text = (value: string): string => `$${value.length}\r\n${value}\r\n`;
export const bulk = (value: string | undefined): string => (value === undefined ? NULL : text(value));
export const list = (items: readonly string[], mark = "*"): string =>
  `${mark}${items.length}\r\n${items.join("")}`;

/** What the server sends when a tracked key has changed. */
export const invalidation = (key: string): string => list([text("invalidate"), list([text(key)])], ">");

/** What it sends when all its data was replaced. */
export const EMPTIED = list([text("invalidate"), NULL], ">");
