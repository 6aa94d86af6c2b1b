// A node:http or node:http2 request as the engine sees it, and the changes to its fields for the handler.
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { RequestChange, RequestInfo } from "../message/exchange.ts";
import { beginFill } from "../message/nested-caches.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Request fields that affect caching with any options. Most requests have none of them. */
const CACHE_FIELDS: ReadonlySet<string> = new Set([
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

/** Iterating over the fields present is cheaper than looking up each of CACHE_FIELDS. */
function hasCacheField(headers: object): boolean {
  for (const name in headers) if (CACHE_FIELDS.has(name)) return true;
  return false;
}

export class NodeRequestInfo implements RequestInfo {
  readonly message: NodeRequest;
  #headers: NodeRequest["headers"];
  readonly target: string;
  readonly isPlain: boolean;

  /** `target`: the original URL, if a framework rewrote `message.url`. */
  constructor(message: NodeRequest, target = message.url ?? "") {
    this.message = message;
    this.#headers = message.headers;
    this.target = target;
    this.isPlain = !("stream" in message) && !hasCacheField(this.#headers);
  }

  /** Copies the headers before `changeRequest`, so that this view still has what the client sent. */
  keepClientHeaders(): void {
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

  /** HTTP/2 frames a body without any header field (RFC 9113, 8.1). */
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

/** Changes `headers`, `rawHeaders` and what derives from them in place: other middleware holds the same object. */
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
  // node:http rebuilds it from rawHeaders on the next access.
  if ("headersDistinct" in request) (request as { headersDistinct: unknown }).headersDistinct = undefined;
}
