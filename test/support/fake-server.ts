// A server in the test's own process that sends exactly the bytes a test gives it; each protocol adds its own reader.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";

/** One client of a fake server. */
export interface FakeConnection {
  readonly socket: Socket;
  say(text: string): void;
}

export interface FakeOptions {
  readonly tls?: TlsOptions | undefined;
}

export abstract class FakeServerBase<Client extends FakeConnection> implements AsyncDisposable {
  /** Every client that connected, in order. */
  readonly clients: Client[] = [];
  readonly #server: Server;
  #port = 0;

  protected constructor({ tls }: FakeOptions = {}) {
    const welcome = (socket: Socket): void => this.#welcome(socket);
    this.#server = tls === undefined ? createServer(welcome) : createTlsServer(tls, welcome);
    this.#server.on("tlsClientError", () => {});
  }

  /** Reads what the client sends, and calls `received` after each command. */
  protected abstract converse(connection: FakeConnection, received: () => void): Client;

  /** How a text is written to the socket. */
  protected abstract readonly encoding: BufferEncoding;

  protected async listen(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Of its only address; known for as long as the object lives. */
  get port(): number {
    return this.#port;
  }

  get endpoint(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.#port };
  }

  /** Clients whose connection is open. */
  get present(): readonly Client[] {
    return this.clients.filter(({ socket }) => !socket.destroyed);
  }

  /** Resolves when the client with this number has connected. */
  async client(number: number): Promise<Client> {
    while (this.clients.length <= number) await once(this.#server, "arrival");
    return this.clients[number]!;
  }

  /** Resolves when a client has sent what is looked for. */
  protected async clientThat(hasSent: (client: Client) => boolean): Promise<Client> {
    for (;;) {
      const client = this.clients.find(hasSent);
      if (client !== undefined) return client;
      await once(this.#server, "command");
    }
  }

  /** Ends every connection and listens no more. */
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
    socket.setNoDelay(true);
    socket.on("error", () => {});
    const say = (text: string): void => {
      if (!socket.destroyed) socket.write(text, this.encoding);
    };
    this.clients.push(this.converse({ socket, say }, () => this.#server.emit("command")));
    this.#server.emit("arrival");
  }
}
