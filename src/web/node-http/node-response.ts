// Responses of node:http and node:http2: their fields, sending a cached one, and whether the client is still there.
import { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Reply, ResponseHead } from "../message/exchange.ts";
import type { HeaderList } from "../message/header-list.ts";

export type NodeResponse = ServerResponse | Http2ServerResponse;

/** The methods both kinds share, with the signatures used here. */
export interface Sink {
  statusCode: number;
  statusMessage: string;
  writeHead(...args: unknown[]): unknown;
  write(chunk: unknown, encoding?: unknown, done?: unknown): boolean;
  end(chunk?: unknown, encoding?: unknown, done?: unknown): unknown;
  flushHeaders(): void;
  setHeader(name: string, value: string | readonly string[]): void;
  getHeader(name: string): number | string | readonly string[] | undefined;
  getHeaderNames(): string[];
  getRawHeaderNames?(): string[];
  removeHeader(name: string): void;
  once(event: string, listener: () => void): void;
  emit(event: string): boolean;
}

export const sinkOf = (response: NodeResponse): Sink => response as unknown as Sink;

/** A repeated field becomes one field with several values. */
export function setHeaders(response: NodeResponse, list: HeaderList): void {
  setFields(sinkOf(response), list);
}

export function setFields(sink: Pick<Sink, "setHeader">, list: HeaderList): void {
  const fields = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (let at = 0; at < list.length; at += 2) {
    const name = list[at]!;
    const field = fields.get(name.toLowerCase());
    if (field === undefined) fields.set(name.toLowerCase(), { name, values: [list[at + 1]!] });
    else field.values.push(list[at + 1]!);
  }
  for (const { name, values } of fields.values())
    sink.setHeader(name, values.length === 1 ? values[0]! : values);
}

/** The fields that are set. */
export function headersOf(
  response: Pick<Sink, "getHeader" | "getHeaderNames" | "getRawHeaderNames">,
): string[] {
  const sink = response;
  const list: string[] = [];
  for (const name of sink.getRawHeaderNames?.() ?? sink.getHeaderNames()) {
    const value = sink.getHeader(name);
    if (Array.isArray(value)) for (const line of value) list.push(name, String(line));
    else if (value !== undefined) list.push(name, String(value));
  }
  return list;
}

export function replaceHeaders(sink: Sink, list: HeaderList): void {
  for (const name of sink.getHeaderNames()) sink.removeHeader(name);
  setFields(sink, list);
}

const { writeHead, end } = ServerResponse.prototype;

/** Sends a reply. Fields already set are kept unless the reply has them. */
export function send(response: NodeResponse, reply: Reply): void {
  const sink = sinkOf(response);
  const { status, message, headers, body } = reply;
  // node:http is fastest with a flat list for writeHead. Lists with repeated names are not always accepted, node:http2 takes
  // none, and methods patched by other middleware may expect an object, or change the fields until the end.
  if (!reply.isPlain || sink.writeHead !== writeHead || sink.end !== end) setHead(response, reply);
  else if (message === "") sink.writeHead(status, headers);
  else sink.writeHead(status, message, headers);
  if (body === undefined) sink.end();
  else sink.end(body, "latin1");
}

function setHead(response: NodeResponse, { status, message, headers }: ResponseHead): void {
  response.statusCode = status;
  if (message !== "" && !("stream" in response)) response.statusMessage = message;
  setHeaders(response, headers);
}

/** Stands for a head that was written and not sent; see interception.ts. */
export const HELD = "held";

const socketOf = (response: NodeResponse): Socket | undefined =>
  (response as { req?: { socket?: Socket } }).req?.socket;

/** Whether the client can no longer get the response. */
export function isGone(response: NodeResponse): boolean {
  // A response of HTTP/2 does not know it, and its socket serves other streams.
  if ("stream" in response) return response.stream.destroyed || response.stream.closed;
  return response.destroyed || socketOf(response)?.destroyed === true;
}

/** Calls `gone` once the client can no longer get the response, at once if it already cannot. Returns how to stop watching. */
export function onGone(response: NodeResponse, gone: () => void): () => void {
  if (isGone(response)) {
    gone();
    return () => {};
  }
  const socket = socketOf(response);
  const stop = (): void => {
    socket?.off("close", once);
    response.off("close", once);
  };
  const once = (): void => {
    stop();
    gone();
  };
  response.once("close", once);
  // A pipelined response does not have the socket yet, and gets no event of its own.
  socket?.once("close", once);
  return stop;
}

/** The fields that were sent; undefined as long as none were. */
export function sentHeaders(response: NodeResponse): HeaderList | undefined {
  if ("stream" in response) {
    const { sentHeaders: sent } = response.stream as { sentHeaders?: Record<string, unknown> };
    if (sent === undefined || !response.stream.headersSent) return undefined;
    return Object.entries(sent).flatMap(([name, value]) =>
      [value].flat().flatMap((line) => [name, String(line)]),
    );
  }
  const { _header: text } = response as { _header?: unknown };
  if (typeof text !== "string" || text === HELD) return undefined;
  return text
    .split("\r\n")
    .slice(1)
    .flatMap((line) => {
      const colon = line.indexOf(":");
      return colon < 1 ? [] : [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
}
