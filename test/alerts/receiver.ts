// A real HTTP server that keeps the requests it receives and answers as a test specifies.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { AlertPayload } from "../../src/alerts/notification.ts";
import { until } from "../support/until.ts";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly payload: AlertPayload;
}

type Respond = (response: ServerResponse, received: Received, count: number) => void;

export const answer =
  (status: number, headers: Record<string, string> = {}): Respond =>
  (response) => {
    response.writeHead(status, headers).end();
  };

export class Receiver {
  readonly received: Received[] = [];
  /** May be replaced at any time. */
  respond: Respond;
  readonly #server: Server;
  readonly #scheme: string;

  private constructor(server: Server, scheme: string, respond: Respond) {
    this.#server = server;
    this.#scheme = scheme;
    this.respond = respond;
    server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("error", () => {});
      request.on("end", () => {
        const body = Buffer.concat(chunks).toString();
        const { method = "", url = "", headers } = request;
        const received = { method, path: url, headers, body, payload: JSON.parse(body) as AlertPayload };
        this.received.push(received);
        this.respond(response, received, this.received.length);
      });
    });
  }

  static async start(
    respond: Respond = answer(204),
    tls?: { readonly cert: string; readonly key: string },
  ): Promise<Receiver> {
    const server = tls === undefined ? createServer() : createSecureServer(tls);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Receiver(server, tls === undefined ? "http" : "https", respond);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}/hook`;
  }

  /** All requests, once there are at least `count`. */
  async has(count: number): Promise<readonly Received[]> {
    await until(() => this.received.length >= count, { what: `${count} requests at the receiver` });
    return this.received;
  }

  openConnections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}
