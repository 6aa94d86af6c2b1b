// What redis-cli does, without a process for each command: tests ask servers thousands of times.
import { execFile } from "node:child_process";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import type { Certificates } from "./certificate.ts";
import { binaryOf } from "./machine.ts";

export interface CliOptions {
  readonly requirepass?: string;
  readonly tls?: Certificates;
}

const LIMIT_MS = 30_000;

/** Resolves with what redis-cli would print; rejects with the server's words when the command fails. */
export function redisCli(port: number, options: CliOptions, args: readonly string[]): Promise<string> {
  return args[0]?.startsWith("-") ? redisCliItself(port, options, args) : command(port, options, args);
}

/** Knows options, such as `-c`. */
async function redisCliItself(port: number, { requirepass, tls }: CliOptions, args: readonly string[]) {
  const options = ["-h", tls === undefined ? "127.0.0.1" : "localhost", "-p", String(port), "-e"];
  if (tls !== undefined) options.push("--tls", "--cacert", tls.caFile);
  const env = { ...process.env, ...(requirepass !== undefined && { REDISCLI_AUTH: requirepass }) };
  const { stdout } = await promisify(execFile)(binaryOf("redis-cli"), [...options, ...args], {
    env,
    timeout: LIMIT_MS,
  });
  return stdout.trimEnd();
}

async function command(port: number, { requirepass, tls }: CliOptions, args: readonly string[]) {
  const address = { host: "127.0.0.1", port };
  const socket =
    tls === undefined
      ? connectPlain(address)
      : connectTls({ ...address, ca: tls.ca, servername: "localhost" });
  try {
    const replies = repliesFrom(socket);
    socket.setTimeout(LIMIT_MS, () => socket.destroy(new Error(`no reply within ${LIMIT_MS} ms`)));
    if (requirepass !== undefined) {
      socket.write(encoded(["AUTH", requirepass]));
      await replies.next();
    }
    socket.write(encoded(args));
    const { value: reply } = await replies.next();
    if (reply === undefined) throw new Error("the server closed the connection");
    if (reply instanceof ErrorReply) throw reply;
    // So that the server has forgotten this connection.
    socket.end();
    for await (const _ of replies);
    return textOf(reply).trimEnd();
  } catch (cause) {
    throw new Error(`redis-cli ${args.join(" ")}: ${(cause as Error).message}`, { cause });
  } finally {
    socket.destroy();
  }
}

const encoded = (words: readonly string[]): string =>
  `*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join("")}`;

class ErrorReply extends Error {}

type Reply = Buffer | ErrorReply | readonly Reply[];

const textOf = (reply: Reply): string => {
  if (reply instanceof ErrorReply) return reply.message;
  return Buffer.isBuffer(reply) ? reply.toString() : reply.map(textOf).join("\n");
};

/** The replies of RESP2, one after another. */
async function* repliesFrom(socket: Socket): AsyncGenerator<Reply, undefined> {
  const bytes = new Incoming(socket);
  const one = async (): Promise<Reply | undefined> => {
    const line = await bytes.line();
    if (line === undefined) return undefined;
    const rest = line.slice(1);
    if (line[0] === "-") return new ErrorReply(rest);
    if (line[0] === "$") return Number(rest) < 0 ? Buffer.alloc(0) : bytes.text(Number(rest));
    if (line[0] !== "*") return Buffer.from(rest);
    const items: Reply[] = [];
    for (let left = Number(rest); left > 0; left--) items.push((await one()) ?? new ErrorReply("cut off"));
    return items;
  };
  for (let reply = await one(); reply !== undefined; reply = await one()) yield reply;
}

class Incoming {
  readonly #chunks: AsyncIterator<Buffer>;
  #left = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  async line(): Promise<string | undefined> {
    for (;;) {
      const end = this.#left.indexOf("\r\n");
      if (end >= 0) return this.#take(end).toString();
      if (!(await this.#more())) return undefined;
    }
  }

  async text(length: number): Promise<Buffer> {
    while (this.#left.length < length + 2) if (!(await this.#more())) break;
    return this.#take(length);
  }

  #take(length: number): Buffer {
    const taken = this.#left.subarray(0, length);
    this.#left = this.#left.subarray(length + 2);
    return taken;
  }

  async #more(): Promise<boolean> {
    const { value, done } = await this.#chunks.next();
    if (done === true) return false;
    this.#left = Buffer.concat([this.#left, value]);
    return true;
  }
}
