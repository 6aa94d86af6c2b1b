// A request of node:http or node:http2 as the engine sees it, and how its fields are changed for the handler.
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { RequestChange, RequestFacts } from "../message/exchange.ts";
import { beginFill } from "../message/nested-caches.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;

const HEEDED: ReadonlySet<string> = new Set([
  "authorization",
  "cache-control",
  "content-length",
  "cookie",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
  "transfer-encoding",
  "upgrade",
]);

/** One look at each field that is there costs less than one question for each that might be. */
export function listensToClose(headers: object): boolean {
  for (const name in headers) if (HEEDED.has(name)) return true;
  return false;
}

export class NodeFacts implements RequestFacts {
  readonly message: NodeRequest;
  #headers: NodeRequest["headers"];
  readonly target: string;
  readonly isPlain: boolean;

  /** `target`: where a framework has changed `url`. */
  constructor(message: NodeRequest, target = message.url ?? "") {
    this.message = message;
    this.#headers = message.headers;
    this.target = target;
    this.isPlain = !("stream" in message) && !listensToClose(this.#headers);
  }

  /** What the client sent stays known, whatever the handler is shown. */
  keep(): void {
    this.#headers = { ...this.#headers };
  }

  get method(): string {
    return this.message.method ?? "GET";
  }

  get isSecure(): boolean {
    return (this.message.socket as { encrypted?: boolean } | undefined)?.encrypted === true;
  }

  get host(): string {
    return this.header(":authority") ?? this.#headers.host ?? "";
  }

  /** HTTP/2 frames bodies itself and needs no field for it (RFC 9113, 8.1). */
  get hasContent(): boolean {
    const length = this.#headers["content-length"];
    if (length !== undefined) return length !== "0";
    if (this.#headers["transfer-encoding"] !== undefined) return true;
    const { stream } = this.message as Partial<Http2ServerRequest>;
    return stream !== undefined && !stream.endAfterHeaders;
  }

  header(name: string): string | undefined {
    const value = this.#headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }

  headerNames(): Iterable<string> {
    return Object.keys(this.#headers);
  }
}

/** In place, since others hold the same object: `headers`, `rawHeaders` and what is made of them. */
export function changeRequest(request: NodeRequest, { fill, remove, set }: RequestChange): void {
  beginFill(request, fill);
  const { headers, rawHeaders } = request;
  const gone = new Set(remove);
  for (let at = 0; at < set.length; at += 2) gone.add(set[at]!);
  if (gone.size === 0) return;
  for (const name of gone) delete headers[name];
  let kept = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (gone.has(name.toLowerCase())) continue;
    rawHeaders[kept++] = name;
    rawHeaders[kept++] = rawHeaders[at + 1]!;
  }
  rawHeaders.length = kept;
  for (let at = 0; at < set.length; at += 2) {
    headers[set[at]!] = set[at + 1]!;
    rawHeaders.push(set[at]!, set[at + 1]!);
  }
  // node:http makes it from rawHeaders when it is asked for the next time.
  if ("headersDistinct" in request) (request as { headersDistinct: unknown }).headersDistinct = undefined;
}
