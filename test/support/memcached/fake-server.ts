// A server in the test's own process that says exactly what it is told to, byte by byte.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

export interface FakeClient {
  readonly socket: Socket;
  /** What it sent, line by line; the data of a `ms` is a line as well. */
  readonly lines: string[];
  /** What it sent, write by write as far as the network kept them apart. */
  readonly writes: string[];
  say(text: string): void;
}

/** What to answer to a line; undefined: nothing. */
export type Script = (line: string, client: FakeClient) => string | undefined;

/** What every server answers to a client that asks who it is. */
export const greet: Script = (line) => {
  if (line === "stats") return `STAT version 1.6.18\r\nSTAT time ${SOME_SECOND}\r\nEND\r\n`;
  if (line === "stats settings") return "STAT item_size_max 1048576\r\nSTAT cas_enabled yes\r\nEND\r\n";
  return line === "mn" ? "MN\r\n" : undefined;
};

const SOME_SECOND = 1_700_000_000;

export class FakeServer {
  /** Those that came, in order. */
  readonly clients: FakeClient[] = [];
  /** May be replaced at any time. */
  script: Script;
  readonly #server: Server;
  #port = 0;

  private constructor(script: Script) {
    this.script = script;
    this.#server = createServer((socket) => this.#welcome(socket));
  }

  static async start(script: Script = greet): Promise<FakeServer> {
    const server = new FakeServer(script);
    server.#server.listen(0, "127.0.0.1");
    await once(server.#server, "listening");
    server.#port = (server.#server.address() as AddressInfo).port;
    return server;
  }

  get url(): string {
    return `memcached://127.0.0.1:${this.endpoint.port}`;
  }

  get endpoint(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.#port };
  }

  /** Those still there. */
  get present(): readonly FakeClient[] {
    return this.clients.filter(({ socket }) => !socket.destroyed);
  }

  /** Resolves when some client has sent a line that begins like this. */
  async received(beginning: string): Promise<FakeClient> {
    for (;;) {
      const client = this.clients.find(({ lines }) => lines.some((line) => line.startsWith(beginning)));
      if (client !== undefined) return client;
      await once(this.#server, "line");
    }
  }

  async stop(): Promise<void> {
    for (const { socket } of this.clients) socket.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, "close");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #welcome(socket: Socket): void {
    const client: FakeClient = {
      socket,
      lines: [],
      writes: [],
      say: (text) => {
        if (!socket.destroyed) socket.write(text, "latin1");
      },
    };
    let rest = "";
    socket.setNoDelay(true);
    socket.on("error", () => {});
    socket.setEncoding("latin1").on("data", (text: string) => {
      client.writes.push(text);
      const lines = (rest + text).split("\r\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        client.lines.push(line);
        const answer = this.script(line, client);
        if (answer !== undefined) client.say(answer);
        this.#server.emit("line");
      }
    });
    this.clients.push(client);
  }
}
