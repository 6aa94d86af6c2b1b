// The dashboard behind node:http and the frameworks on top of it: their requests as Request, the Response written back.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { type DashboardHandler, otherMethod } from "./handler.ts";

/** What frameworks add to a request. */
interface NodeRequest extends IncomingMessage {
  /** The URL before routers stripped their mount path. */
  readonly originalUrl?: string;
  /** What a body parser has made of the body. */
  readonly body?: unknown;
}

export async function serveNode(
  handler: DashboardHandler,
  message: NodeRequest,
  response: ServerResponse,
  native: unknown = message,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const url = urlOf(message);
  const answer =
    // No Request can have this method.
    message.method === "TRACE"
      ? otherMethod(url.pathname)
      : await handler.handle(requestOf(message, url, gone.signal), native);
  await writeTo(response, answer);
}

function urlOf(message: NodeRequest): URL {
  const isSecure = (message.socket as { encrypted?: boolean }).encrypted === true;
  const path = message.originalUrl ?? message.url ?? "/";
  // A path of `//x` or an absolute URL must not become another host.
  const url = new URL(`${isSecure ? "https" : "http"}://localhost`);
  [url.pathname = "/", url.search = ""] = path.replace(/^[a-z]+:\/\/[^/]*/i, "").split(/(?=\?)/, 2);
  return url;
}

function requestOf(message: NodeRequest, url: URL, signal: AbortSignal): Request {
  const { method = "GET", headers } = message;
  // HTTP/2 has the host in a field of its own.
  const host = headers.host ?? headers[":authority"] ?? "localhost";
  const hasBody = method !== "GET" && method !== "HEAD";
  const list = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || name.startsWith(":") ? [] : [[name, String(value)] as [string, string]],
  );
  const request = new Request(url, {
    method,
    signal,
    headers: list,
    ...(hasBody && { body: bodyOf(message), duplex: "half" }),
  } as RequestInit);
  if (!request.headers.has("host")) request.headers.set("host", String(host));
  return request;
}

/** A body that was parsed already cannot be read again. */
function bodyOf(message: NodeRequest): ReadableStream | string {
  const { body } = message;
  if (message.readableEnded || (typeof body === "object" && body !== null)) return JSON.stringify(body ?? {});
  return Readable.toWeb(message) as ReadableStream;
}

async function writeTo(response: ServerResponse, answer: Response): Promise<void> {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  if (answer.body === null) {
    response.end();
    return;
  }
  response.flushHeaders();
  const reader = answer.body.getReader();
  response.once("close", () => void reader.cancel().catch(() => {}));
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (response.destroyed) return;
      if (!response.write(part.value)) await drained(response);
    }
    response.end();
  } finally {
    // The client may have left before anything was written.
    await reader.cancel().catch(() => {});
  }
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    response.once("drain", resolve);
    response.once("close", resolve);
  });
