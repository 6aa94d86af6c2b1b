// A Fetch API Request and its Response as an Exchange.
import {
  beginFill,
  type Exchange,
  type Reply,
  type RequestChange,
  type RequestInfo,
  type ResponseHead,
  type Tap,
} from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";
import { hasOtherHost, isKeyField, selectorsOf } from "../message/keyed-header.ts";
import { drain, observed, peek } from "./fetch-body.ts";

export type FetchHandler<Rest extends unknown[] = []> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>;

type Body = ConstructorParameters<typeof Response>[0];

class FetchRequest implements RequestInfo {
  readonly message: Request;
  readonly method: string;
  readonly isSecure: boolean;
  readonly host: string;
  readonly target: string;
  readonly hasContent: boolean;
  readonly isPlain = false;
  readonly hasClientCertificate: boolean;
  readonly selectors: string;
  readonly #headers: Headers;
  readonly #names: readonly string[];

  constructor(message: Request, hasClientCertificate: boolean) {
    const { method, url, headers } = message;
    this.message = message;
    const authority = url.indexOf("//") + 2;
    const path = url.indexOf("/", authority);
    const fragment = url.indexOf("#", path);
    this.method = method.toUpperCase();
    this.isSecure = url.startsWith("https:");
    this.host = url.slice(
      url.lastIndexOf("@", path) < authority ? authority : url.lastIndexOf("@", path) + 1,
      path,
    );
    this.target = fragment < 0 ? url.slice(path) : url.slice(path, fragment);
    // A Request has no body with GET or HEAD, but some servers give it one, or show the handler the message behind it.
    const isBare = this.method === "GET" || this.method === "HEAD";
    this.hasContent =
      !isBare || (headers.get("content-length") ?? "0") !== "0" || headers.has("transfer-encoding");
    this.#headers = headers;
    this.#names = [...headers.keys()];
    this.hasClientCertificate = hasClientCertificate;
    this.selectors = this.#names.some(isKeyField) || hasOtherHost(this) ? selectorsOf(this) : "";
  }

  header(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined;
  }

  headerNames(): Iterable<string> {
    return this.#names;
  }
}

/** The head of a response as its client gets it; undefined if the client gets none. */
export type SentHead = Pick<ResponseHead, "status" | "headers"> | undefined;

/** Calls the handler. */
export interface FetchCalls {
  run(request: Request): Response | Promise<Response>;
  /**
   * Calls it in the background with a copy of the request, changed as the handler must see it. Undefined if it cannot be
   * called again.
   */
  readonly runAgain: ((copy: Request) => Response | Promise<Response>) | undefined;
  /** Whether the client presented a TLS certificate, where that is known. */
  readonly hasClientCertificate?: boolean;
  /** See `Exchange.isOuter`. */
  isOuter?(name: string, value: string): boolean;
  /**
   * Called before the handler if its response may be stored. The function it returns is called when the response has ended,
   * and waits until outer middleware has acted on it.
   */
  watchHead?(isDetached: boolean): () => Promise<SentHead>;
  /** The same stream, cancelled when the client leaves, where the server does not see to that itself. */
  endWithClient?(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>;
  /** Whether the handler threw and the response comes from an error handler. */
  readonly hasThrown?: boolean;
}

/** `Native` is the framework's request type. */
export class FetchExchange<Native> implements Exchange<Native> {
  readonly request: FetchRequest;
  readonly native: Native;
  readonly response: Promise<Response>;
  readonly #message: Request;
  readonly #calls: FetchCalls;
  /** Has no client: the response is discarded. */
  readonly #isDetached: boolean;
  /** Whether the response was sent by `reply` rather than the handler. */
  isReplied = false;
  #resolve: (response: Response) => void = () => {};
  /** Of the response that was given to the framework. */
  #status: number | undefined;
  #sentHead: (() => Promise<SentHead>) | undefined;
  /** Rejects `response`: the handler failed. */
  fail: (error: unknown) => void = () => {};

  constructor(message: Request, calls: FetchCalls, native: Native, isDetached = false) {
    this.#isDetached = isDetached;
    this.request = new FetchRequest(message, calls.hasClientCertificate === true);
    this.native = native;
    this.#message = message;
    this.#calls = calls;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.fail = reject;
    });
  }

  #respond(response: Response): void {
    this.#status = response.status;
    this.#resolve(response);
  }

  reply(reply: Reply): void {
    this.isReplied = true;
    const { body, isText } = reply;
    const sent = typeof body === "string" && !isText ? Buffer.from(body, "latin1") : body;
    this.#respond(responseOf((sent ?? null) as Body, reply, reply.isPlain));
  }

  isOuter(name: string, value: string): boolean {
    return this.#calls.isOuter?.(name, value) ?? false;
  }

  async forward(change: RequestChange | undefined, tap: Tap): Promise<void> {
    const message = change === undefined ? this.#message : changed(this.#message, change);
    if (tap.wantsWhole) this.#sentHead = this.#calls.watchHead?.(this.#isDetached);
    const response = await (this.#isDetached ? this.#calls.runAgain!(message) : this.#calls.run(message));
    // These cannot be rebuilt: network errors, protocol switches, and responses already sent by other means.
    if (response.status < 200 || response.headers.has(SENT_ALREADY)) {
      tap.abort();
      return this.#respond(response);
    }
    const head: ResponseHead = {
      status: response.status,
      message: response.statusText,
      headers: [...response.headers].flat(),
      isFromErrorHandler: this.#calls.hasThrown === true,
    };
    if (response.body === null) return this.#send(tap, head, null, new Uint8Array());
    if (!tap.wantsWhole) return this.#send(tap, head, response.body);
    const source = await peek(response.body);
    return this.#send(tap, head, source, source instanceof Uint8Array ? source : undefined);
  }

  get canRunAgain(): boolean {
    return this.#calls.runAgain !== undefined && this.request.method === "GET" && !this.#isDetached;
  }

  /** Without the client's abort signal, which must not cancel a load that other requests wait for. */
  background(): FetchExchange<Native> {
    return new FetchExchange(copyOf(this.#message), this.#calls, this.native, true);
  }

  async #send(
    tap: Tap,
    head: ResponseHead,
    source: ReadableStream<Uint8Array> | Uint8Array | null,
    whole?: Uint8Array,
  ): Promise<void> {
    const verdict = tap.head(head, whole);
    await verdict.settled;
    const isStream = source instanceof ReadableStream;
    if (this.#isDetached) this.#status = head.status;
    const ended = (): void => this.#end(tap);
    if (verdict.head === undefined || this.#isDetached) {
      const collected = (): void => {
        tap.withheld?.();
        ended();
      };
      if (isStream) await drain(source, tap, verdict.wantsBody, collected);
      else collected();
      return;
    }
    const body = isStream ? this.#bodyOf(source, tap, verdict.wantsBody, ended) : source;
    this.#respond(responseOf(body as Body, verdict.head));
    if (!isStream) ended();
  }

  #bodyOf(
    source: ReadableStream<Uint8Array>,
    tap: Tap,
    isWanted: boolean,
    ended: () => void,
  ): ReadableStream<Uint8Array> {
    const body = isWanted ? observed(source, tap, ended) : source;
    return this.#calls.endWithClient?.(body) ?? body;
  }

  /** Ends the tap, if something was sent with the head that really left. */
  #end(tap: Tap): void {
    if (this.#sentHead === undefined || this.#status === undefined) {
      tap.end();
      return;
    }
    void this.#sentHead().then((sent) => {
      if (sent?.status !== this.#status) tap.abort();
      else {
        tap.sent?.(sent!.headers);
        tap.end();
      }
    });
  }
}

/** Set by Hono on Node when a handler wrote to the socket itself. */
const SENT_ALREADY = "x-hono-already-sent";

function responseOf(body: Body, { status, message, headers }: ResponseHead, isPlain = false): Response {
  return new Response(status === 304 || status === 204 || status === 205 ? null : body, {
    status,
    statusText: message,
    headers: isPlain ? recordOf(headers) : headersOf(headers),
  });
}

/** A plain record: some servers can then avoid creating Headers. */
function recordOf(list: HeaderList): Record<string, string> {
  const record: Record<string, string> = {};
  for (let at = 0; at < list.length; at += 2) record[list[at]!] = list[at + 1]!;
  return record;
}

function headersOf(list: HeaderList): Headers {
  const headers = new Headers();
  for (let at = 0; at < list.length; at += 2) headers.append(list[at]!, list[at + 1]!);
  return headers;
}

function changed(request: Request, change: RequestChange): Request {
  const shown = withChange(request, change);
  beginFill(shown, change.fill);
  return shown;
}

function withChange(request: Request, { remove, set }: RequestChange): Request {
  if (remove.length === 0 && set.length === 0) return request;
  const headers = new Headers(request.headers);
  for (const name of remove) headers.delete(name);
  for (let at = 0; at < set.length; at += 2) headers.set(set[at]!, set[at + 1]!);
  // The keyBuilder may have consumed the body; the framework then passes its copy to the handler.
  const shown =
    request.body === null || request.bodyUsed
      ? new Request(request.url, { method: request.method, headers, signal: request.signal })
      : new Request(request, { headers });
  return likeOriginal(shown, request);
}

/**
 * Gives the copy the class and the properties that a framework gave to its request, such as `nextUrl` of a NextRequest or the
 * parameters of a router.
 */
function likeOriginal(copy: Request, request: Request): Request {
  const prototype = Object.getPrototypeOf(request) as { readonly constructor: RequestClass };
  if (prototype !== Object.getPrototypeOf(copy)) {
    // Servers that only imitate a Request inherit its constructor, and keep its fields in properties of their own.
    if (!Object.hasOwn(prototype, "constructor") || !extendsRequest(prototype)) return copy;
    // What the framework parsed of a cookie that is hidden must not be copied.
    if (request.headers.has("cookie") && !copy.headers.has("cookie")) return new prototype.constructor(copy);
    Object.setPrototypeOf(copy, prototype);
  }
  for (const key of Reflect.ownKeys(request)) {
    if (!Object.hasOwn(copy, key))
      Object.defineProperty(copy, key, Object.getOwnPropertyDescriptor(request, key)!);
  }
  return copy;
}

type RequestClass = new (copied: Request) => Request;

/** By its name: a server may have replaced the global class since, as that of Hono does when it starts. */
function extendsRequest(prototype: object): boolean {
  for (let parent = Object.getPrototypeOf(prototype); parent !== null; parent = Object.getPrototypeOf(parent))
    if (Object.hasOwn(parent, "constructor") && parent.constructor.name === "Request") return true;
  return false;
}

/** The same request without its body and abort signal. */
export function copyOf({ url, method, headers }: Request): Request {
  return new Request(url, { method, headers });
}
