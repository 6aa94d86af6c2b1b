// The reverse proxy that the public HTTP cache tests run against, built from each adapter of the HTTP cache.
import { createServer, request as httpRequest } from "node:http";
import { connect, createServer as createHttp2Server } from "node:http2";
import { Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";

/**
 * @typedef {import("node:http").RequestListener} Listener
 * @typedef {import("node:http").Server} Server
 * @typedef {(options: any, app?: any) => any} HttpCache the function `httpCache` of the adapter's module
 * @typedef {{
 *   module: string,
 *   open(httpCache: HttpCache, options: object, originPort: number): Promise<Server> | Server,
 *   hasNoInterim?: boolean,
 * }} Adapter `hasNoInterim`: its handlers cannot send interim responses (1xx)
 */

/** @type {Record<string, Adapter>} */
export const ADAPTERS = {
  node: {
    module: "node",
    open: (httpCache, options, originPort) => createServer(httpCache(options)(proxyTo(originPort))),
  },
  http2: {
    module: "node",
    open: (httpCache, options, originPort) => bridge(httpCache(options)(proxyTo(originPort))),
  },
  express: {
    module: "express",
    open: (httpCache, options, originPort) =>
      // A field that is set before would make Node replace repeated fields.
      createServer(express().disable("x-powered-by").use(httpCache(options)).use(proxyTo(originPort))),
  },
  fastify: {
    module: "fastify",
    async open(httpCache, options, originPort) {
      const app = fastify();
      app.register(httpCache(options));
      app.removeAllContentTypeParsers();
      app.addContentTypeParser("*", (_request, _payload, done) => done(null));
      app.addHttpMethod("M-SEARCH", { hasBody: true });
      app.after(() =>
        app.all("*", (request, reply) => {
          reply.hijack();
          proxyTo(originPort)(request.raw, reply.raw);
        }),
      );
      await app.ready();
      return app.server;
    },
  },
  koa: {
    module: "koa",
    open(httpCache, options, originPort) {
      const app = new Koa();
      app.use(httpCache(options));
      app.use(({ req, res }) => new Promise((done) => proxyTo(originPort)(req, res.once("close", done))));
      return createServer(app.callback());
    },
  },
  hono: {
    module: "hono",
    hasNoInterim: true,
    open(httpCache, options, originPort) {
      const app = new Hono();
      app.use(httpCache(options, app));
      app.all("*", (context) => fetchFrom(originPort)(context.req.raw));
      return createServer(getRequestListener((request, env) => app.fetch(request, env)));
    },
  },
  fetch: {
    module: "fetch",
    hasNoInterim: true,
    open: (httpCache, options, originPort) =>
      createServer(getRequestListener(httpCache(options)(fetchFrom(originPort)))),
  },
};

/** Hop-by-hop fields, which end with their connection. */
const HOP_BY_HOP = ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/**
 * The suite reports mistakes with 999, which neither HTTP/2 nor a Response allows.
 * @param {import("node:http").IncomingMessage} message
 */
const statusOf = ({ statusCode = 502 }) => (statusCode > 599 ? 502 : statusCode);

/** @param {string} name */
const isFraming = (name) => name === "keep-alive" || name === "transfer-encoding";

/**
 * Also the fields that Connection lists, which have no place in HTTP/2.
 * @param {import("node:http").IncomingMessage} message
 * @param {string} name
 */
const isOfConnection = ({ headers }, name) =>
  HOP_BY_HOP.includes(name) ||
  (headers.connection ?? "")
    .toLowerCase()
    .split(/[\s,]+/)
    .includes(name);

/**
 * @param {readonly string[]} raw names and values in turn
 * @param {(name: string) => boolean} keeps gets the name in lower case
 */
const filtered = (raw, keeps) => raw.filter((_, at) => keeps((raw[at - (at % 2)] ?? "").toLowerCase()));

/**
 * Names in lower case, and values.
 * @param {readonly string[]} raw
 * @returns {[string, string][]}
 */
const pairs = (raw) =>
  raw.flatMap((name, at) => (at % 2 === 0 ? [[name.toLowerCase(), raw[at + 1] ?? ""]] : []));

/**
 * One line per field: HTTP/2 allows most fields only once.
 * @param {readonly string[]} raw
 */
function combined(raw) {
  /** @type {Record<string, string | string[]>} */
  const fields = {};
  for (const [name, value] of pairs(raw)) {
    if (name === "set-cookie") fields[name] = [...(fields[name] ?? []), value];
    else fields[name] = fields[name] === undefined ? value : `${fields[name]}, ${value}`;
  }
  return fields;
}

/**
 * A listener that forwards to the origin, as a reverse proxy does.
 * @param {number} originPort
 * @returns {(request: any, response: any) => void}
 */
export function proxyTo(originPort) {
  return (request, response) => {
    const { method, url, rawHeaders } = request;
    const isHttp2 = request.httpVersionMajor === 2;
    const upstream = httpRequest({
      port: originPort,
      host: "127.0.0.1",
      method,
      path: url,
      headers: isHttp2
        ? ["host", request.authority, ...filtered(rawHeaders, (name) => !name.startsWith(":"))]
        : rawHeaders,
      // A reused connection may just be closed by the other side.
      agent: false,
    });
    upstream.on("information", ({ statusCode, headers }) => {
      if (statusCode === 102 && isHttp2) response.stream.additionalHeaders({ ":status": 102 });
      else if (statusCode === 102) response.writeProcessing();
      if (statusCode === 103) response.writeEarlyHints(headers);
    });
    /** @type {import("node:http").IncomingMessage | undefined} */
    let received;
    upstream.on("response", (answer) => {
      received = answer;
      const status = isHttp2 ? statusOf(answer) : answer.statusCode;
      const { rawHeaders: raw } = answer;
      if (isHttp2)
        response.writeHead(status, combined(filtered(raw, (name) => !isOfConnection(answer, name))));
      else
        response.writeHead(
          status,
          answer.statusMessage,
          filtered(raw, (name) => !isFraming(name)),
        );
      answer.pipe(response);
      answer.on("error", () => response.destroy());
    });
    upstream.on("error", () => {
      // Anything after a complete response is not part of it.
      if (received?.complete) return;
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    request.pipe(upstream);
  };
}

/**
 * The same as a function from a Request to a Response.
 * @param {number} originPort
 * @returns {(request: Request) => Promise<Response>}
 */
function fetchFrom(originPort) {
  return (request) =>
    new Promise((resolve) => {
      const { pathname, search } = new URL(request.url);
      const upstream = httpRequest({
        port: originPort,
        host: "127.0.0.1",
        method: request.method,
        path: pathname + search,
        headers: [...request.headers].flat(),
        agent: false,
      });
      upstream.on("response", (answer) => {
        const { statusMessage: statusText = "", rawHeaders } = answer;
        const status = statusOf(answer);
        const headers = new Headers();
        const own = filtered(rawHeaders, (name) => !isFraming(name));
        for (const [name, value] of pairs(own)) headers.append(name, value);
        const hasBody = request.method !== "HEAD" && ![204, 205, 304].includes(status);
        const body = hasBody ? /** @type {ReadableStream} */ (Readable.toWeb(answer)) : null;
        resolve(new Response(body, { status, statusText, headers }));
      });
      upstream.on("error", () => resolve(new Response(null, { status: 502 })));
      if (request.body === null) upstream.end();
      else Readable.fromWeb(/** @type {any} */ (request.body)).pipe(upstream);
    });
}

/**
 * A server for the suite's clients, which only know HTTP/1.1, in front of one for HTTP/2.
 * @param {(request: any, response: any) => void} listener
 * @returns {Promise<Server>}
 */
async function bridge(listener) {
  const behind = createHttp2Server(listener);
  await new Promise((done) => behind.listen(0, "127.0.0.1", () => done(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (behind.address());
  const session = connect(`http://127.0.0.1:${port}`);
  const server = createServer((request, response) => {
    const { host, "content-length": length, "transfer-encoding": coding } = request.headers;
    const isEmpty = (length === undefined || length === "0") && coding === undefined;
    const fields = filtered(request.rawHeaders, (name) => name !== "host" && !HOP_BY_HOP.includes(name));
    const stream = session.request(
      { ...combined(fields), ":method": request.method, ":path": request.url, ":authority": host },
      { endStream: isEmpty },
    );
    if (!isEmpty) request.pipe(stream);
    stream.on("headers", (headers) => {
      const { ":status": status, ...rest } = headers;
      if (status === 102) response.writeProcessing();
      if (status === 103) response.writeEarlyHints(/** @type {any} */ (rest));
    });
    stream.on("response", (headers) => {
      const { ":status": status, ...rest } = headers;
      response.writeHead(Number(status), rest);
      stream.pipe(response);
    });
    stream.on("error", () => response.destroy());
    stream.on("aborted", () => response.destroy());
  });
  server.once("close", () => {
    session.destroy();
    behind.close();
  });
  return server;
}
