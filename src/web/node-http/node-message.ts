// A node:http or node:http2 request as the engine sees it, and the changes to its fields for the handler.
import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import { USUAL_CREDENTIALS } from "../message/credential.ts";
import { beginFill, type RequestChange, type RequestInfo } from "../message/exchange.ts";
import { hasOtherHost, isKeyField, selectorsOf } from "../message/keyed-header.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;

/** Request fields other than credentials that affect caching with any options. Most requests have none of them. */
const CACHE_FIELDS: ReadonlySet<string> = new Set([
  "cache-control",
  "content-length",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "range",
  "transfer-encoding",
  "upgrade",
]);

/** What the names of a request's fields say about it. */
const PLAIN = 0;
const AFFECTED = 1;
const SELECTED = 2;

const kinds = new Map<string, number>();
const MAX_KINDS = 1_024;

/** Remembered: most requests have the same fields, and the lookup is much cheaper than the tests. */
function kindOf(name: string): number {
  let kind = kinds.get(name);
  if (kind === undefined) {
    kind =
      (CACHE_FIELDS.has(name) || USUAL_CREDENTIALS.has(name) ? AFFECTED : PLAIN) |
      (isKeyField(name) ? SELECTED : PLAIN);
    if (kinds.size < MAX_KINDS) kinds.set(name, kind);
  }
  return kind;
}

/** Iterating over the fields present is cheaper than looking up each of those that count. */
function kindOfAll(headers: object): number {
  let kind = PLAIN;
  for (const name in headers) kind |= kindOf(name);
  return kind;
}

export interface ClientSocket {
  readonly encrypted?: boolean;
  readonly authorized?: boolean;
  readonly authorizationError?: unknown;
  getPeerCertificate?(): object | null;
}

/** Whether the client at the other end of a connection presented a TLS certificate. */
export function hasCertificate(socket: ClientSocket | undefined | null): boolean {
  if (socket?.encrypted !== true) return false;
  if (socket.authorized === true) return true;
  // A server that does not reject unknown issuers leaves the decision to the handler.
  const hasFailed = socket.authorizationError !== undefined && socket.authorizationError !== null;
  return hasFailed && Object.keys(socket.getPeerCertificate?.() ?? {}).length > 0;
}

export class NodeRequestInfo implements RequestInfo {
  readonly message: NodeRequest;
  #headers: NodeRequest["headers"];
  readonly target: string;
  readonly isPlain: boolean;
  readonly hasClientCertificate: boolean;
  readonly selectors: string;

  /** `target`: the original URL, if a framework rewrote `message.url`. */
  constructor(message: NodeRequest, target = message.url ?? "") {
    this.message = message;
    this.#headers = message.headers;
    this.target = target;
    const kind = kindOfAll(this.#headers);
    this.hasClientCertificate = hasCertificate(message.socket as ClientSocket);
    const isHttp2 = "stream" in message;
    this.isPlain = (kind & AFFECTED) === 0 && !isHttp2 && !this.hasClientCertificate;
    const isSelected = (kind & SELECTED) !== 0 || (isHttp2 && hasOtherHost(this));
    this.selectors = isSelected ? selectorsOf(this) : "";
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
