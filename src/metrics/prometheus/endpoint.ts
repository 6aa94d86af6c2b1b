// The HTTP server of a pull collector: serves GET and HEAD of /metrics, and nothing else.
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError, ConnectionError } from "../../core/errors.ts";
import { nodeEvents, nodeHttp } from "../../core/lazy-builtin.ts";

const PATH = "/metrics";
/** More than any set of scrapers needs. */
const MAX_CONNECTIONS = 64;
const REQUEST_TIMEOUT_MS = 10_000;

export interface Page {
  readonly contentType: string;
  readonly body: string;
}

export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

export class MetricsEndpoint {
  readonly #server: Server;
  /** Responses not finished yet. */
  readonly #responses = new Set<ServerResponse>();
  readonly #listening: Promise<EndpointAddress>;

  constructor(host: string, port: number, page: () => Promise<Page>) {
    this.#server = nodeHttp().createServer({
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: REQUEST_TIMEOUT_MS / 10,
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.setTimeout(REQUEST_TIMEOUT_MS);
    this.#server.on("request", (request, response) => {
      this.#responses.add(response);
      response.once("close", () => this.#responses.delete(response));
      void respond(request, response, page);
    });
    this.#server.on("connection", (socket) => socket.unref());
    this.#listening = this.#listen(host, port);
    this.#listening.catch(() => {});
  }

  /** The bound address; rejects with ConfigError if the port is taken, with ConnectionError if it cannot listen there. */
  listening(): Promise<EndpointAddress> {
    return this.#listening;
  }

  /** Finishes requests in progress, then frees the port. Idempotent. */
  async close(): Promise<void> {
    await this.#listening.catch(() => {});
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await Promise.all([...this.#responses].map((response) => nodeEvents().once(response, "close")));
    // Including connections without a request, which count as active.
    this.#server.closeAllConnections();
    await closed;
  }

  #listen(host: string, port: number): Promise<EndpointAddress> {
    return new Promise((resolve, reject) => {
      // Also handles later errors, which would otherwise crash the process.
      this.#server.on("error", (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
      this.#server.listen({ host, port }, () => {
        this.#server.unref();
        resolve({ host, port: (this.#server.address() as AddressInfo).port });
      });
    });
  }
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const place = `${host}:${port}`;
  if (error.code === "EADDRINUSE") {
    return new ConfigError("CONFIG_INVALID", `the metrics endpoint needs ${place}, which is already in use`, {
      hint: "Give PullCollector another port, or stop the process that listens there.",
      cause: error,
    });
  }
  return new ConnectionError(`the metrics endpoint cannot listen on ${place}: ${error.message}`, {
    cause: error,
  });
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  page: () => Promise<Page>,
): Promise<void> {
  // Discard any request body.
  request.resume();
  const [path] = (request.url ?? "").split("?");
  if (path !== PATH) return end(response, 404, "not found\n");
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return end(response, 405, "method not allowed\n");
  }
  try {
    const { body, contentType } = await page();
    end(response, 200, body, contentType);
  } catch {
    end(response, 500, "the metrics cannot be read\n");
  }
}

/** Node omits the body of a HEAD response itself. */
function end(
  response: ServerResponse,
  status: number,
  body: string,
  type = "text/plain; charset=utf-8",
): void {
  response.writeHead(status, {
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(body);
}
