// Clients that send one request. The one of HTTP/1.1 has no network in between: the server gets a stream as its connection, so
// that thousands of requests cost a fraction of what sockets would, and what arrives before a connection ends is always the same.
import type { Server } from "node:http";
import { type ClientHttp2Session, constants } from "node:http2";
import { Duplex } from "node:stream";

/** What one client got. Nothing is compared of a response that is not whole. */
export interface Got {
  readonly end: "whole" | "broken" | "hung";
  readonly status: number;
  readonly message: string;
  /** By name in lower case, one value per line. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: string;
}

const notWhole = (end: "broken" | "hung"): Got => ({
  end,
  status: 0,
  message: "",
  headers: {},
  body: "",
});

/** Sends one request on a connection of its own. */
export function askOnWire(server: Server, path: string, method: string, hungAfterMs: number): Promise<Got> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        parts.push(chunk);
        done();
      },
    });
    const timer = setTimeout(() => {
      resolve(notWhole("hung"));
      wire.destroy();
    }, hungAfterMs);
    const over = (): void => {
      clearTimeout(timer);
      resolve(readResponse(Buffer.concat(parts).toString("latin1"), method) ?? notWhole("broken"));
      wire.destroy();
    };
    wire.once("finish", over);
    wire.once("close", over);
    wire.on("error", () => {});
    server.emit("connection", wire);
    wire.push(`${method} ${path} HTTP/1.1\r\nhost: site.test\r\nconnection: close\r\n\r\n`);
  });
}

/** Sends one request on a stream of HTTP/2. */
export function askOnStream(
  session: ClientHttp2Session,
  path: string,
  method: string,
  hungAfterMs: number,
): Promise<Got> {
  return new Promise((resolve) => {
    const fields = { ":path": path, ":method": method, ":authority": "site.test" };
    const sent = session.request(fields, { endStream: true });
    let status = 0;
    const headers: Record<string, string[]> = {};
    let body = "";
    sent.setEncoding("latin1");
    sent.on("response", ({ ":status": given = 0, ...fields }) => {
      status = given;
      for (const [name, value] of Object.entries(fields)) headers[name] = [value].flat().map(String);
    });
    sent.on("data", (text: string) => {
      body += text;
    });
    sent.on("error", () => {});
    sent.on("close", () => {
      const isWhole = sent.rstCode === constants.NGHTTP2_NO_ERROR && status !== 0;
      resolve(isWhole ? { end: "whole", status, message: "", headers, body } : notWhole("broken"));
    });
    sent.setTimeout(hungAfterMs, () => {
      resolve(notWhole("hung"));
      sent.close();
    });
  });
}

/** RFC 9112. Undefined if the response is malformed or not complete. */
function readResponse(text: string, method: string): Got | undefined {
  const headEnd = text.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
  const [, code, message = ""] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(statusLine) ?? [];
  if (headEnd < 0 || code === undefined) return undefined;
  const status = Number(code);
  const rest = text.slice(headEnd + 4);
  if (status < 200) return readResponse(rest, method);
  const headers: Record<string, string[]> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) return undefined;
    const name = line.slice(0, colon).toLowerCase();
    headers[name] ??= [];
    headers[name].push(line.slice(colon + 1).trim());
  }
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  const body = hasBody ? readBody(rest, headers) : rest;
  if (body === undefined || (!hasBody && rest !== "")) return undefined;
  return { end: "whole", status, message, headers, body };
}

function readBody(text: string, headers: Got["headers"]): string | undefined {
  const length = headers["content-length"]?.[0];
  if (headers["transfer-encoding"] !== undefined) return readChunks(text);
  return length === undefined || Number(length) === text.length ? text : undefined;
}

function readChunks(text: string): string | undefined {
  let body = "";
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const next = lineEnd + 2 + size;
    if (lineEnd < 0 || Number.isNaN(size)) return undefined;
    // Trailer fields follow the last chunk.
    if (size === 0) return text.endsWith("\r\n\r\n") ? body : undefined;
    if (text.slice(next, next + 2) !== "\r\n") return undefined;
    body += text.slice(lineEnd + 2, next);
    at = next + 2;
  }
}
