// A fake Redis server that answers as a script says, byte by byte.
import { RespReader } from "../../../src/backends/kv/resp/reader.ts";
import type { Reply } from "../../../src/backends/kv/resp/reply.ts";
import { encodeRecord } from "../../../src/core/frame/frame.ts";
import { type FakeConnection, type FakeOptions, FakeServerBase } from "../fake-server.ts";

/** One client of the fake server. */
export interface FakeClient extends FakeConnection {
  /** What it sent, command by command. */
  readonly commands: string[][];
  /** What it sent, write by write as far as the network kept them apart; each a list of commands. */
  readonly writes: string[][][];
}

/** What to answer; undefined: nothing. */
export type Script = (command: readonly string[], client: FakeClient) => string | undefined;

/** What every server answers to a client that introduces itself. */
export const greet: Script = ([name]) => {
  switch (name) {
    case "HELLO":
      return "%1\r\n+server\r\n+redis\r\n";
    case "SELECT":
    case "CLIENT":
      return "+OK\r\n";
    case "PING":
      return "+PONG\r\n";
    case "TIME":
      return "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
    case "INFO":
      return bulk("redis_version:7.0.0\r\nrole:master\r\nrun_id:fake\r\n");
    default:
      return undefined;
  }
};

/** What a sentinel answers that calls the server at this port the master. */
export const sentinelFor =
  (port: number, host = "127.0.0.1"): Script =>
  (command, client) => {
    if (command[0] === "SUBSCRIBE") return ">3\r\n+subscribe\r\n++switch-master\r\n:1\r\n";
    if (command[0] !== "SENTINEL") return greet(command, client);
    return command[1] === "SENTINELS" ? "*0\r\n" : `*2\r\n${bulk(host)}${bulk(String(port))}`;
  };

/** The smallest record there is, as a store keeps it. */
const STAMP = encodeRecord({ kind: "stamp", version: "8 bytes.", expires: Number.POSITIVE_INFINITY });

/** What a server answers to a client that scans it, in one step, and reads the records under these keys. */
export const keeperOf =
  (keys: ReadonlySet<string>): Script =>
  ([name, key = ""], { socket }) => {
    switch (name) {
      case "SCAN":
        return `*2\r\n${bulk("0")}*${keys.size}\r\n${[...keys].map(bulk).join("")}`;
      case "STRLEN":
        return `:${keys.has(key) ? STAMP.length : 0}\r\n`;
      case "GETRANGE":
        // Not a text: it would be written otherwise.
        if (!keys.has(key)) return bulk("");
        socket.write(Buffer.concat([Buffer.from(`$${STAMP.length}\r\n`), STAMP, Buffer.from("\r\n")]));
        return undefined;
      default:
        return undefined;
    }
  };

export const bulk = (text: string): string => `$${Buffer.byteLength(text)}\r\n${text}\r\n`;

/** The commands that a client tries on connecting, to find out what it may do; scripts need not handle them. */
const PROBED: Readonly<Record<string, string>> = {
  "SCAN 0 COUNT 1": `*2\r\n${bulk("0")}*0\r\n`,
  [`EVALSHA ${"0".repeat(40)} 0`]: "-NOSCRIPT No matching script\r\n",
  "EVAL return 1 0": ":1\r\n",
};

export class FakeServer extends FakeServerBase<FakeClient> {
  protected readonly encoding = "utf8";
  /** May be replaced at any time. */
  script: Script;

  private constructor(script: Script, options: FakeOptions) {
    super(options);
    this.script = script;
  }

  static start(script: Script = greet, options: FakeOptions = {}): Promise<FakeServer> {
    return new FakeServer(script, options).listen();
  }

  /** The commands of all clients, in the order they arrived within each. */
  get commands(): string[][] {
    return this.clients.flatMap(({ commands }) => commands);
  }

  /** Resolves when some client has sent a command that begins like this. */
  received(...beginning: readonly string[]): Promise<FakeClient> {
    const isIt = (command: readonly string[]): boolean => beginning.every((part, at) => command[at] === part);
    return this.clientThat(({ commands }) => commands.some(isIt));
  }

  protected converse(connection: FakeConnection, received: () => void): FakeClient {
    const client: FakeClient = { ...connection, commands: [], writes: [] };
    let write: string[][] = [];
    const reader = new RespReader({
      reply: (reply) => {
        const command = (reply as readonly Reply[]).map(String);
        const allowed = PROBED[command.join(" ")];
        if (allowed !== undefined) {
          client.say(allowed);
          return;
        }
        client.commands.push(command);
        write.push(command);
        const answer = this.script(command, client);
        if (answer !== undefined) client.say(answer);
        received();
      },
      push: () => {},
    });
    client.socket.on("data", (chunk: Buffer) => {
      write = [];
      reader.feed(chunk);
      client.writes.push(write);
    });
    return client;
  }
}
