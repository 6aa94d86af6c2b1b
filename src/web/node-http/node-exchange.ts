// A request and a response of node:http or node:http2, as the engine sees them.
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Exchange, Reply, RequestChange, Tap } from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";
import { changeRequest, NodeFacts, type NodeRequest } from "./node-message.ts";
import { Interception, type NodeResponse, send, setHeaders } from "./node-response.ts";

/** A request and its response. */
export interface NodePair {
  readonly message: NodeRequest;
  readonly response: NodeResponse;
}

/** A copy of a request has come to the handler. */
export interface Arrival {
  /** The handler is next: whatever answers before that is not the handler. `outer` as `pendingHeaders` of an exchange. */
  begin(outer?: HeaderList): void;
  /** As `disown` of an exchange. */
  disown(): void;
}

/** How a handler is called. One for all requests, or one for each where a framework knows the next handler only then. */
export interface Handler {
  run(pair: NodePair): void;
  /** Calls it for a copy of a request, whose response goes to nobody. */
  runAgain(copy: IncomingMessage, response: ServerResponse, arrival: Arrival): void;
}

const NOTHING: HeaderList = [];

/** Its own request facts: one object less for every hit. `Native` is the framework's own request. */
export class NodeExchange<Native> extends NodeFacts implements Exchange<Native>, NodePair {
  readonly native: Native;
  readonly response: NodeResponse;
  readonly #handler: Handler;
  #interception: Interception | undefined;

  /** `target`: path and query, where a framework has changed `url`. */
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

  get mayHavePending(): boolean {
    return false;
  }

  /** Fields of the response that were set before, and that the framework keeps to itself until it sends them. */
  pendingHeaders(): HeaderList {
    return NOTHING;
  }

  reply(reply: Reply): void {
    if (this.#interception !== undefined) this.#interception.release();
    else if (this.mayHavePending) setHeaders(this.response, this.pendingHeaders());
    send(this.response, reply);
  }

  forward(change: RequestChange | undefined, tap: Tap): void {
    this.#interception = new Interception(this.response, tap, false);
    this.#interception.begin(this.pendingHeaders());
    if (change !== undefined) {
      this.keep();
      changeRequest(this.message, change);
    }
    this.#handler.run(this);
  }

  /** The handler threw: what comes is what others make of that. */
  disown(): void {
    this.#interception?.disown();
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  background(): Exchange<Native> {
    return new DetachedExchange(this.message as IncomingMessage, this.target, this.#handler, this.native);
  }
}

/** The same request once more, without a client. */
class DetachedExchange<Native> extends NodeFacts implements Exchange<Native> {
  readonly canRunAgain = false;
  /** That of the client: for the copy the framework has not made one yet. */
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
        this.keep();
        changeRequest(this.#copy, change);
      },
      disown: () => interception.disown(),
    });
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  background(): never {
    throw new Error("a request without a client is not run again");
  }
}

/** A request of node:http can be made again; one of node:http2 is a stream of its connection. */
function canRunAgain(request: NodeRequest): request is IncomingMessage {
  return request instanceof IncomingMessage && (request.method === "GET" || request.method === "HEAD");
}

/** A request like the given one, already at its end. It knows the client's socket but cannot close it. */
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

/** Before a copy is sent on its way: whom to tell when it comes to the middleware of this engine. */
export function expectArrival(copy: IncomingMessage, engine: unknown, arrival: Arrival): void {
  expected.set(copy, { engine, arrival });
}

/** Whom to tell when this is a copy that has arrived; undefined: it is a client's request, or another middleware's. */
export function arrivalOf(message: object, engine: unknown): Arrival | undefined {
  const found = expected.get(message);
  if (found === undefined || found.engine !== engine) return undefined;
  expected.delete(message);
  return found.arrival;
}
