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

/** A request as a client sends it. */
export interface Asked {
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default 1.1. */
  readonly version?: "1.0" | "1.1";
}

/** Sends one request on a connection of its own. */
export async function askOnWire(server: Server, asked: Asked, hungAfterMs: number): Promise<Got> {
  const [got] = await askPipelined(server, [asked], hungAfterMs);
  return got!;
}

/** Sends all requests at once on one connection. What follows a response that is not whole is not whole either. */
export function askPipelined(server: Server, asked: readonly Asked[], hungAfterMs: number): Promise<Got[]> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        parts.push(chunk);
        done();
      },
    });
    const settle = (end: "broken" | "hung"): void => {
      clearTimeout(timer);
      let rest: string | undefined = Buffer.concat(parts).toString("latin1");
      resolve(
        asked.map(({ method }, at) => {
          const read = rest === undefined ? undefined : readResponse(rest, method);
          rest = read?.rest;
          const isLast = at === asked.length - 1;
          return read === undefined || (isLast && rest !== "") ? notWhole(end) : read.got;
        }),
      );
      wire.destroy();
    };
    const timer = setTimeout(() => settle("hung"), hungAfterMs);
    wire.once("finish", () => settle("broken"));
    wire.once("close", () => settle("broken"));
    wire.on("error", () => {});
    server.emit("connection", wire);
    wire.push(asked.map((one, at) => textOf(one, at === asked.length - 1)).join(""));
  });
}

function textOf({ path, method, headers = {}, version = "1.1" }: Asked, isLast: boolean): string {
  const fields = { host: "site.test", ...headers, ...(isLast ? { connection: "close" } : {}) };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/${version}\r\n${lines.join("")}\r\n`;
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

interface Read {
  readonly got: Got;
  /** What follows the response. */
  readonly rest: string;
}

/** RFC 9112. Undefined if the response is malformed or not complete. */
function readResponse(text: string, method: string): Read | undefined {
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
  const read = hasBody ? readBody(rest, headers) : { body: "", rest };
  if (read === undefined || (read.rest !== "" && !read.rest.startsWith("HTTP/1.1 "))) return undefined;
  return { got: { end: "whole", status, message, headers, body: read.body }, rest: read.rest };
}

interface ReadBody {
  readonly body: string;
  readonly rest: string;
}

function readBody(text: string, headers: Got["headers"]): ReadBody | undefined {
  const length = headers["content-length"]?.[0];
  if (headers["transfer-encoding"] !== undefined) return readChunks(text);
  if (length === undefined) return { body: text, rest: "" };
  const end = Number(length);
  return end > text.length ? undefined : { body: text.slice(0, end), rest: text.slice(end) };
}

function readChunks(text: string): ReadBody | undefined {
  let body = "";
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const next = lineEnd + 2 + size;
    if (lineEnd < 0 || Number.isNaN(size)) return undefined;
    if (size === 0) {
      // Trailer fields follow the last chunk, and then an empty line.
      const end = text.indexOf("\r\n\r\n", lineEnd);
      return end < 0 ? undefined : { body, rest: text.slice(end + 4) };
    }
    if (text.slice(next, next + 2) !== "\r\n") return undefined;
    body += text.slice(lineEnd + 2, next);
    at = next + 2;
  }
}
