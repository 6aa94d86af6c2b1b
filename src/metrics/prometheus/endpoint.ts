// The small HTTP server of a pull collector: GET and HEAD of /metrics, and nothing else.
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError, ConnectionError } from "../../core/errors.ts";
import { nodeHttp } from "../../core/lazy-builtin.ts";

const PATH = "/metrics";
/** Nobody who scrapes needs more. */
const MOST_CONNECTIONS = 64;
const SLOWEST_REQUEST_MS = 10_000;

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
  /** Answers that have not left yet. */
  readonly #answers = new Set<ServerResponse>();
  readonly #listening: Promise<EndpointAddress>;

  constructor(host: string, port: number, page: () => Promise<Page>) {
    this.#server = nodeHttp().createServer({
      requestTimeout: SLOWEST_REQUEST_MS,
      headersTimeout: SLOWEST_REQUEST_MS,
      connectionsCheckingInterval: SLOWEST_REQUEST_MS / 10,
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
    this.#server.setTimeout(SLOWEST_REQUEST_MS);
    this.#server.on("request", (request, response) => {
      this.#answers.add(response);
      response.once("close", () => this.#answers.delete(response));
      void answer(request, response, page);
    });
    this.#server.on("connection", (socket) => socket.unref());
    this.#listening = this.#listen(host, port);
    this.#listening.catch(() => {});
  }

  /** Where it can be asked; rejects with ConfigError when the port is taken or not allowed. */
  listening(): Promise<EndpointAddress> {
    return this.#listening;
  }

  /** Answers what is being asked, then frees the port. Idempotent. */
  async close(): Promise<void> {
    await this.#listening.catch(() => {});
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await Promise.all([...this.#answers].map((response) => once(response, "close")));
    // Also those that have not asked anything yet, which count as busy.
    this.#server.closeAllConnections();
    await closed;
  }

  #listen(host: string, port: number): Promise<EndpointAddress> {
    return new Promise((resolve, reject) => {
      // Later ones too: to nobody they would be the end of the process.
      this.#server.on("error", (error: NodeJS.ErrnoException) => reject(refusal(error, host, port)));
      this.#server.listen({ host, port }, () => {
        this.#server.unref();
        resolve({ host, port: (this.#server.address() as AddressInfo).port });
      });
    });
  }
}

function refusal(error: NodeJS.ErrnoException, host: string, port: number): Error {
  const place = `${host}:${port}`;
  if (error.code === "EADDRINUSE") {
    return new ConfigError("CONFIG_INVALID", `the metrics endpoint needs ${place}, which is taken`, {
      hint: "Give PullCollector another port, or end what listens there.",
      cause: error,
    });
  }
  return new ConnectionError(`the metrics endpoint cannot listen on ${place}: ${error.message}`, {
    cause: error,
  });
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  page: () => Promise<Page>,
): Promise<void> {
  // Whatever was sent along is not looked at.
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

/** Node itself leaves the body of an answer to HEAD out. */
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
