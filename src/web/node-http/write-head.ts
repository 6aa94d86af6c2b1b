// What writeHead of node:http and node:http2 does to the fields of a response, and which heads they refuse.
import { ServerResponse } from "node:http";
import {
  headersOf,
  type NodeResponse,
  replaceHeaders,
  type Sink,
  setFields,
  sinkOf,
} from "./node-response.ts";

/** Sets the fields as writeHead would, and throws what it would throw. */
export function applyHead(response: NodeResponse, given: unknown[], fields: unknown): void {
  const sink = sinkOf(response);
  if ("stream" in response) {
    const code = Number(given[0]) | 0;
    if (code < 200 || code > 599) {
      const error = new RangeError(`Invalid status code: ${String(given[0])}`);
      throw Object.assign(error, { code: "ERR_HTTP2_STATUS_INVALID" });
    }
    applyGiven(sink, fields);
    if (isRefused(sink)) throw new TypeError("node:http2 refuses the fields");
    return;
  }
  const blank = sinkOf(new ServerResponse(response.req));
  const before = headersOf(sink);
  setFields(blank, before);
  blank.statusCode = sink.statusCode;
  if (sink.statusMessage !== undefined) blank.statusMessage = sink.statusMessage;
  blank.writeHead(...given);
  // Without fields set before, node:http sends those given to writeHead as they are and does not keep them.
  if (before.length === 0) applyGiven(sink, fields);
  else replaceHeaders(sink, headersOf(blank));
  sink.statusCode = blank.statusCode;
  sink.statusMessage = blank.statusMessage;
}

/** The fields given to writeHead, which accepts an object, a flat list or a list of pairs. */
export function givenHeaders(given: unknown): string[] {
  const pairs: unknown[] = [];
  if (Array.isArray(given)) pairs.push(...(Array.isArray(given[0]) ? given.flat() : given));
  else if (typeof given === "object" && given !== null) pairs.push(...Object.entries(given).flat());
  const list: string[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    for (const line of [pairs[at + 1]].flat()) {
      if (line !== undefined) list.push(String(pairs[at]), String(line));
    }
  }
  return list;
}

function applyGiven(sink: Sink, given: unknown): void {
  if (Array.isArray(given)) {
    const flat: unknown[] = Array.isArray(given[0]) ? given.flat() : given;
    const list: string[] = [];
    for (let at = 0; at < flat.length; at += 2) {
      const name = String(flat[at]);
      sink.removeHeader(name);
      for (const line of [flat[at + 1]].flat()) list.push(name, String(line));
    }
    setFields(sink, list);
  } else if (typeof given === "object" && given !== null) {
    for (const [name, value] of Object.entries(given)) {
      sink.setHeader(name, value as string | readonly string[]);
    }
  }
}

/** Fields that node:http2 refuses to send more than once. */
const SINGLE = new Set(
  `access-control-allow-credentials access-control-max-age age authorization content-encoding content-language content-length
  content-location content-md5 content-range content-type date dnt etag expires from host last-modified location max-forwards
  proxy-authorization range referer retry-after tk upgrade-insecure-requests user-agent x-content-type-options`.split(
    /\s+/,
  ),
);

/** Whether node:http2 refuses to send the fields, although it let them be set. */
function isRefused(sink: Sink): boolean {
  return sink.getHeaderNames().some((name) => {
    const value = sink.getHeader(name);
    if (name === "te") return value !== "trailers";
    return Array.isArray(value) && value.length > 1 && SINGLE.has(name);
  });
}

/** On HTTP/2 the head of a response that cannot have a body ends it, and leaves at once. */
export function isEndedByHead(response: NodeResponse): boolean {
  if (!("stream" in response)) return false;
  const { headRequest } = response.stream as { headRequest?: boolean };
  return headRequest === true || [204, 205, 304].includes(response.statusCode);
}

/** Whether node accepts the head. */
export function isSendable(response: NodeResponse): boolean {
  if ("stream" in response) return !isRefused(sinkOf(response));
  const code = response.statusCode | 0;
  return code >= 100 && code <= 999 && !/[^\t\x20-\x7e\x80-\xff]/.test(messageOf(response));
}

/** HTTP/2 has no reason phrase, and node warns when it is read. */
export function messageOf(response: NodeResponse): string {
  return "stream" in response ? "" : String(response.statusMessage ?? "");
}
