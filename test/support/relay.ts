// A TCP relay in front of a real server, which simulates a bad network.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** What is done to connections until the next instruction. */
class Conduct {
  readonly cutAfterBytes: number = Number.POSITIVE_INFINITY;
  /** How many connections are still to be cut. */
  cutsLeft = 0;
  readonly isSilent: boolean = false;
  readonly delayMs: number = 0;
  /** Requests are not passed on, not even when the client has gone, until `Relay.releaseRequests`. */
  readonly holdsRequests: boolean = false;
  /** A text in the first request that is held back. */
  readonly holdsFrom: string = "";
  /** Of each direction of each connection. */
  readonly bytesPerSecond: number = Number.POSITIVE_INFINITY;

  constructor(fault: Partial<Conduct> = {}) {
    Object.assign(this, fault);
  }
}

/** One client, and its own connection to the server. */
class Passage {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #cut: () => void;
  #conduct = new Conduct();
  /** Bytes of replies passed on under the present conduct. */
  #passed = 0;
  #late: { readonly bytes: Buffer; readonly timer: NodeJS.Timeout }[] = [];
  #isStranded = false;
  readonly #held: Buffer[] = [];

  constructor(client: Socket, server: Socket, conduct: Conduct, cut: () => void) {
    this.#client = client;
    this.#server = server;
    this.#cut = cut;
    client.on("data", (bytes) => this.#asked(bytes));
    server.on("data", (bytes) => this.#replied(bytes));
    for (const socket of [client, server]) socket.on("error", () => {});
    server.on("close", () => client.destroySoon());
    client.on("close", () => {
      this.#takeLate();
      if (!this.#conduct.holdsRequests) server.destroySoon();
    });
    this.follow(conduct);
  }

  follow(conduct: Conduct): void {
    if (this.#isStranded) return;
    this.#conduct = conduct;
    this.#passed = 0;
    for (const bytes of this.#takeLate()) this.#pass(bytes);
    for (const socket of [this.#client, this.#server]) {
      if (conduct.isSilent) socket.pause();
      else socket.resume();
    }
  }

  reset(): void {
    this.#client.resetAndDestroy();
  }

  /** What was held back arrives, and its end if the client has gone. */
  release(chunks: number): void {
    for (const bytes of this.#held.splice(0, chunks)) this.#server.write(bytes);
    if (this.#client.destroyed) this.#server.end();
  }

  get passed(): number {
    return this.#passed;
  }

  get holds(): number {
    return this.#held.reduce((sum, bytes) => sum + bytes.length, 0);
  }

  strand(): void {
    this.follow(new Conduct({ isSilent: true }));
    this.#isStranded = true;
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }

  #asked(bytes: Buffer): void {
    const { holdsRequests, holdsFrom } = this.#conduct;
    if (holdsRequests && (this.#held.length > 0 || bytes.includes(holdsFrom))) this.#held.push(bytes);
    else {
      this.#server.write(bytes);
      this.#throttle(this.#client, bytes.length);
    }
  }

  /** Takes nothing more from a socket for as long as these bytes take. */
  #throttle(socket: Socket, bytes: number): void {
    const { bytesPerSecond } = this.#conduct;
    if (bytesPerSecond === Number.POSITIVE_INFINITY) return;
    socket.pause();
    setTimeout(
      () => {
        if (!this.#conduct.isSilent) socket.resume();
      },
      (bytes / bytesPerSecond) * 1_000,
    );
  }

  #replied(bytes: Buffer): void {
    const { delayMs } = this.#conduct;
    this.#throttle(this.#server, bytes.length);
    if (delayMs === 0) this.#pass(bytes);
    else this.#late.push({ bytes, timer: setTimeout(() => this.#passOldest(), delayMs) });
  }

  #passOldest(): void {
    const oldest = this.#late.shift();
    if (oldest !== undefined) this.#pass(oldest.bytes);
  }

  #pass(bytes: Buffer): void {
    const [client, conduct] = [this.#client, this.#conduct];
    if (client.destroyed) return;
    const left = conduct.cutAfterBytes - this.#passed;
    this.#passed += bytes.length;
    if (bytes.length <= left || conduct.cutsLeft === 0) {
      client.write(bytes);
      return;
    }
    conduct.cutsLeft--;
    this.#server.pause();
    client.write(bytes.subarray(0, left), () => {
      // Two turns of the event loop: a client that sees the part and the reset at once takes them for an orderly end.
      setImmediate(() => setImmediate(() => this.#reset()));
    });
  }

  #reset(): void {
    this.#client.resetAndDestroy();
    this.#cut();
  }

  #takeLate(): readonly Buffer[] {
    const late = this.#late;
    this.#late = [];
    for (const { timer } of late) clearTimeout(timer);
    return late.map(({ bytes }) => bytes);
  }
}

export class Relay {
  /** How many connections were cut. */
  cuts = 0;
  readonly #listener: Server;
  readonly #passages = new Set<Passage>();
  #serverPort: number;
  #conduct = new Conduct();

  private constructor(serverPort: number) {
    this.#serverPort = serverPort;
    this.#listener = createServer({ noDelay: true }, (client) => {
      const server = connect({ host: "127.0.0.1", port: this.#serverPort, noDelay: true });
      const passage = new Passage(client, server, this.#conduct, () => this.cuts++);
      this.#passages.add(passage);
      server.on("close", () => this.#passages.delete(passage));
    });
  }

  static async start(serverPort: number): Promise<Relay> {
    const relay = new Relay(serverPort);
    relay.#listener.listen(0, "127.0.0.1");
    await once(relay.#listener, "listening");
    return relay;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** New connections lead to another server. */
  leadTo(serverPort: number): void {
    this.#serverPort = serverPort;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  /** Passes this many more bytes of replies on, then resets the connection, for the given number of connections in turn. */
  cutReplies(cutAfterBytes: number, cutsLeft = Number.POSITIVE_INFINITY): void {
    this.#follow({ cutAfterBytes, cutsLeft });
  }

  /** Accepts connections and passes nothing on, either way; bytes sent meanwhile arrive once it is over. */
  silence(): void {
    this.#follow({ isSilent: true });
  }

  /** Current connections stay open but never pass anything again; new ones work normally. */
  strand(): void {
    for (const passage of this.#passages) passage.strand();
  }

  /** Resets the current connections. */
  reset(): void {
    for (const passage of this.#passages) passage.reset();
  }

  /**
   * Holds what clients of the current connections send, even after they have gone; new connections work normally.
   * `holdsFrom`: what the first request that is kept contains.
   * `releaseRequests` passes it on.
   */
  holdRequests(holdsFrom = ""): void {
    const holding = new Conduct({ holdsRequests: true, holdsFrom });
    for (const passage of this.#passages) passage.follow(holding);
  }

  /** Connections to the server. */
  get connections(): number {
    return this.#passages.size;
  }

  /** Bytes of replies passed on since the last instruction. */
  get passedBytes(): number {
    return [...this.#passages].reduce((sum, passage) => sum + passage.passed, 0);
  }

  /** Bytes that `holdRequests` has kept. */
  get heldBytes(): number {
    return [...this.#passages].reduce((sum, passage) => sum + passage.holds, 0);
  }

  /** `chunks`: release only this many of each connection, as they were written. */
  releaseRequests(chunks = Number.POSITIVE_INFINITY): void {
    for (const passage of this.#passages) passage.release(chunks);
  }

  /** As slow as this, either way. */
  throttle(bytesPerSecond: number): void {
    this.#follow({ bytesPerSecond });
  }

  /** Delays replies by this much. */
  delayReplies(delayMs: number): void {
    this.#follow({ delayMs });
  }

  /** Passes everything on at once, as in the beginning. */
  restore(): void {
    this.#follow({});
  }

  /** Resets connections, and refuses new ones as long as `work` runs. */
  async whileAway(work: () => Promise<void>): Promise<void> {
    const { port } = this;
    await this.stop();
    try {
      await work();
    } finally {
      this.#listener.listen(port, "127.0.0.1");
      await once(this.#listener, "listening");
    }
  }

  /** Ends every connection and stops listening. */
  async stop(): Promise<void> {
    for (const passage of this.#passages) passage.destroy();
    if (!this.#listener.listening) return;
    this.#listener.close();
    await once(this.#listener, "close");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #follow(fault: Partial<Conduct>): void {
    this.#conduct = new Conduct(fault);
    for (const passage of this.#passages) passage.follow(this.#conduct);
  }
}
