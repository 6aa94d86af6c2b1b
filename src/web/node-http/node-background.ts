// The same request once more, without a client: for refreshing what was just answered stale.
import { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { NodeRequest } from "./node-message.ts";

/** A request of node:http can be made again; one of node:http2 is a stream of its connection. */
export function canRunAgain(request: NodeRequest): request is IncomingMessage {
  return request instanceof IncomingMessage && (request.method === "GET" || request.method === "HEAD");
}

/** A request like the given one, already at its end. It knows the client's socket but cannot close it. */
export function copyRequest(request: IncomingMessage, url: string): IncomingMessage {
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

export function detachedResponse(request: IncomingMessage): ServerResponse {
  return new ServerResponse(request);
}
