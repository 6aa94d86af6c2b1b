// A request and a response of node:http or node:http2, as the engine sees them.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Exchange, Reply, RequestChange, Tap } from "./exchange.ts";
import { canRunAgain, copyRequest, detachedResponse } from "./node-background.ts";
import { changeRequest, NodeFacts, type NodeRequest } from "./node-message.ts";
import { Interception, type NodeResponse, send } from "./node-response.ts";

/** How a handler is called. One for all requests, or one for each where a framework knows the next handler only then. */
export interface Handler<Request extends NodeRequest> {
  run(request: Request, response: NodeResponse): void;
  /**
   * Calls it for a copy of a request, whose response goes to nobody. `begin` is to be called when the handler itself is
   * next: whatever answers before that is not the handler.
   */
  runAgain(request: Request, copy: Request, response: ServerResponse, begin: () => void): void;
}

/** Its own request facts: one object less for every hit. */
export class NodeExchange<Request extends NodeRequest>
  extends NodeFacts<Request>
  implements Exchange<Request>
{
  readonly #response: NodeResponse;
  readonly #handler: Handler<Request>;
  #interception: Interception | undefined;

  /** `target`: path and query, where a framework has changed `url`. */
  constructor(request: Request, response: NodeResponse, handler: Handler<Request>, target?: string) {
    super(request, target);
    this.#response = response;
    this.#handler = handler;
  }

  get request(): this {
    return this;
  }

  get canRunAgain(): boolean {
    return canRunAgain(this.native);
  }

  reply(reply: Reply): void {
    this.#interception?.release();
    send(this.#response, reply);
  }

  forward(change: RequestChange | undefined, tap: Tap): void {
    this.#interception = new Interception(this.#response, tap, false);
    this.#interception.begin();
    if (change !== undefined) {
      this.keep();
      changeRequest(this.native, change);
    }
    this.#handler.run(this.native, this.#response);
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  background(): Exchange<Request> {
    return new DetachedExchange(this.native, this.target, this.#handler);
  }
}

/** The same request once more, without a client. */
class DetachedExchange<Request extends NodeRequest> extends NodeFacts<Request> implements Exchange<Request> {
  readonly canRunAgain = false;
  readonly #original: Request;
  readonly #handler: Handler<Request>;
  #interception: Interception | undefined;

  constructor(original: Request, target: string, handler: Handler<Request>) {
    super(copyRequest(original as IncomingMessage, target) as Request, target);
    this.#original = original;
    this.#handler = handler;
  }

  get request(): this {
    return this;
  }

  reply(): void {}

  forward(change: RequestChange | undefined, tap: Tap): void {
    const response = detachedResponse(this.native as IncomingMessage);
    const interception = new Interception(response, tap, true);
    this.#interception = interception;
    this.#handler.runAgain(this.#original, this.native, response, () => {
      interception.begin();
      if (change === undefined) return;
      this.keep();
      changeRequest(this.native, change);
    });
  }

  isOuter(name: string, value: string): boolean {
    return this.#interception?.isOuter(name, value) ?? false;
  }

  background(): never {
    throw new Error("a request without a client is not run again");
  }
}
