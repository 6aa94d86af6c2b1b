// A node:http or node:http2 request and response as an Exchange, and the copies of requests that refresh stale responses.
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Exchange, Reply, RequestChange, Tap } from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";
import { Interception } from "./interception.ts";
import type { LateFields } from "./late-fields.ts";
import { changeRequest, type NodeRequest, NodeRequestInfo } from "./node-message.ts";
import { observeHead } from "./node-pass.ts";
import { isGone, type NodeResponse, send, setHeaders } from "./node-response.ts";

/** A request and its response. */
export interface NodePair {
  readonly message: NodeRequest;
  readonly response: NodeResponse;
}

/** Notified when a background copy of a request reaches the middleware again. */
export interface Arrival {
  /** The handler is called next; a response before that is not the handler's. `outer`: see `pendingHeaders`. */
  begin(outer?: HeaderList): void;
  /** See `NodeExchange.handlerThrew`. */
  handlerThrew(): void;
  readonly late: LateFields;
}

/** Calls the handler. Shared by all requests, or one per request if the framework passes `next` with it. */
export interface Handler {
  run(pair: NodePair): void;
  /** Calls it with a background copy of a request; the response is discarded. */
  runAgain(copy: IncomingMessage, response: ServerResponse, arrival: Arrival): void;
}

const NOTHING: HeaderList = [];

/** Is its own RequestInfo, which saves an object per hit. `Native` is the framework's request type. */
export class NodeExchange<Native> extends NodeRequestInfo implements Exchange<Native>, NodePair {
  readonly native: Native;
  readonly response: NodeResponse;
  readonly #handler: Handler;
  #interception: Interception | undefined;
  #reportEnd: (() => void) | undefined;

  /** `target`: the original path and query, if a framework rewrote `url`. */
  constructor(
    message: NodeRequest,
    response: NodeResponse,
    handler: Handler,
    native: Native,
    target?: string,
  ) {
    super(message, target);
    this.native = native;
    this.response = response;
    this.#handler = handler;
  }

  get request(): this {
    return this;
  }

  get canRunAgain(): boolean {
    return canRunAgain(this.message);
  }

  get isAbandoned(): boolean {
    return isGone(this.response);
  }

  /** The handler's response may be stored, and is not sent directly. */
  get isIntercepted(): boolean {
    return this.#interception !== undefined;
  }

  get mayHavePending(): boolean {
    return false;
  }

  /** Response fields already set that the framework buffers until it sends the response. */
  pendingHeaders(): HeaderList {
    return NOTHING;
  }

  reply(reply: Reply): void {
    const interception = this.#interception;
    if (interception === undefined && this.mayHavePending) setHeaders(this.response, this.pendingHeaders());
    send(this.response, interception?.releaseFor(reply) ?? reply);
    interception?.replied();
  }

  forward(change: RequestChange | undefined, tap: Tap): void {
    if (!tap.wantsWhole) {
      if (!this.response.headersSent) this.#reportEnd = observeHead(this.response, tap);
      this.#handler.run(this);
      return;
    }
    this.#interception = new Interception(this.response, tap, false);
    this.#interception.begin(this.pendingHeaders());
    if (change !== undefined) {
      this.keepClientHeaders();
      changeRequest(this.message, change);
    }
    this.#handler.run(this);
  }

  /** The handler threw: the response that follows comes from an error handler. */
  handlerThrew(): void {
    this.#interception?.handlerThrew();
  }

  /** The handler returned, and with it ended the response. */
  handlerReturned(): void {
    this.#reportEnd?.();
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  isLate(name: string, value: string): boolean {
    return this.late?.has(name, value) ?? false;
  }

  /** Undefined unless the response of the handler may be stored. */
  get late(): LateFields | undefined {
    return this.#interception?.late;
  }

  background(): Exchange<Native> {
    return new DetachedExchange(this.message as IncomingMessage, this.target, this.#handler, this.native);
  }
}

/** The same request again, without a client: refreshes a response that was served stale. */
class DetachedExchange<Native> extends NodeRequestInfo implements Exchange<Native> {
  readonly canRunAgain = false;
  /** The client's: the framework has not created one for the copy yet. */
  readonly native: Native;
  readonly #copy: IncomingMessage;
  readonly #handler: Handler;
  #interception: Interception | undefined;

  constructor(original: IncomingMessage, target: string, handler: Handler, native: Native) {
    const copy = copyRequest(original, target);
    super(copy, target);
    this.native = native;
    this.#copy = copy;
    this.#handler = handler;
  }

  get request(): this {
    return this;
  }

  reply(): void {}

  forward(change: RequestChange | undefined, tap: Tap): void {
    const response = new ServerResponse(this.#copy);
    const interception = new Interception(response, tap, true);
    this.#interception = interception;
    this.#handler.runAgain(this.#copy, response, {
      begin: (outer) => {
        interception.begin(outer);
        if (change === undefined) return;
        this.keepClientHeaders();
        changeRequest(this.#copy, change);
      },
      handlerThrew: () => interception.handlerThrew(),
      late: interception.late,
    });
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  isLate(name: string, value: string): boolean {
    return this.#interception?.late.has(name, value) ?? false;
  }

  background(): never {
    throw new Error("a background request cannot start another one");
  }
}

/** A node:http request can be copied; a node:http2 request is a stream of its connection. */
function canRunAgain(request: NodeRequest): request is IncomingMessage {
  return request instanceof IncomingMessage && (request.method === "GET" || request.method === "HEAD");
}

/** A copy of the request without a body. Its socket shows the client's properties but cannot write or close. */
function copyRequest(request: IncomingMessage, url: string): IncomingMessage {
  const socket = Object.create(request.socket, {
    destroy: { value: () => socket, writable: true },
    destroySoon: { value: () => {}, writable: true },
    end: { value: () => socket, writable: true },
    write: { value: () => true, writable: true },
  }) as Socket;
  const copy = new IncomingMessage(socket);
  copy.method = request.method ?? "GET";
  copy.url = url;
  copy.httpVersion = request.httpVersion;
  copy.httpVersionMajor = request.httpVersionMajor;
  copy.httpVersionMinor = request.httpVersionMinor;
  copy.headers = { ...request.headers };
  copy.rawHeaders = [...request.rawHeaders];
  copy.complete = true;
  copy.push(null);
  return copy;
}

const expected = new WeakMap<object, { readonly engine: unknown; readonly arrival: Arrival }>();

/** Registers an arrival before a copy is sent through the application. */
export function expectArrival(copy: IncomingMessage, engine: unknown, arrival: Arrival): void {
  expected.set(copy, { engine, arrival });
}

/** The arrival if `message` is this engine's copy; undefined for a client's request or another engine's copy. */
export function takeArrival(message: object, engine: unknown): Arrival | undefined {
  const found = expected.get(message);
  if (found === undefined || found.engine !== engine) return undefined;
  expected.delete(message);
  return found.arrival;
}
