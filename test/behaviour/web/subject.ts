// One handler behind the HTTP cache, served by each adapter over real sockets, with a manual clock.
import {
  type Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { onTestFinished } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { cacheWithClock, ManualClock } from "../../../src/testing/manual-clock.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import type { HttpCacheOptions } from "../../../src/web/engine/options.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as fetchCache } from "../../../src/web/fetch.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import type { XCache } from "../../../src/xcache.ts";

/** What the handler saw of a request. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** 1 for the first. */
  readonly call: number;
}

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array | Readable;
}

export type Script = (seen: Seen) => Answer | Promise<Answer>;

export interface Got {
  readonly status: number;
  readonly message: string;
  readonly headers: IncomingMessage["headers"];
  readonly bytes: Buffer;
  readonly body: string;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
  /** Without: a connection of its own. */
  readonly agent?: Agent;
}

export interface Subject {
  readonly cache: XCache;
  readonly clock: ManualClock;
  readonly engine: HTTPCacheMiddleware<never>;
  readonly calls: Seen[];
  readonly errors: Error[];
  readonly port: number;
  ask(path: string, ask?: Ask): Promise<Got>;
}

export type Adapter = "node" | "express" | "fastify" | "koa" | "fetch" | "hono";
/** The server of Hono replaces the global Request and Response: the others come first, so that they meet the usual ones. */
export const ADAPTERS: readonly Adapter[] = ["node", "express", "fastify", "koa", "fetch", "hono"];

/** The adapters of frameworks that support HTTP/2. */
export const ON_HTTP2: readonly Adapter[] = ["node", "fastify", "koa", "hono"];

export type Options = Partial<Omit<HttpCacheOptions<never>, "onError">>;

/** Runs the framework's listener for a request. */
export type Around = (request: IncomingMessage, listen: () => void) => void;

let subjects = 0;

/** Serves `script` by the adapter; everything is closed when the test is over. */
export async function subject(
  adapter: Adapter,
  script: Script,
  options: Options = {},
  around: Around = (_request, listen) => listen(),
  open: (listener: RequestListener) => Promise<number> = listen,
): Promise<Subject> {
  // Two of them stand for two processes, whose tokens differ.
  const clock = new ManualClock(undefined, ++subjects);
  const cache = options.cache ?? cacheWithClock({ backend: new MemoryBackend() }, clock);
  const errors: Error[] = [];
  const engine = new HTTPCacheMiddleware<never>(
    { ...options, cache, onError: (error) => errors.push(error) },
    clock,
  );
  const calls: Seen[] = [];
  const run = (method: string, url: string, headers: Seen["headers"]): Answer | Promise<Answer> => {
    const seen = { method, url, headers, call: calls.length + 1 };
    calls.push(seen);
    return script(seen);
  };
  const listener = await listenerFor(adapter, engine, run, open === listenHttp2);
  const port = await open((request, response) => around(request, () => void listener(request, response)));
  onTestFinished(() => (cache as XCache).disconnect());
  return {
    cache: cache as XCache,
    clock,
    engine,
    calls,
    errors,
    port,
    ask: (path, given) => ask(port, path, given),
  };
}

type Run = (method: string, url: string, headers: Seen["headers"]) => Answer | Promise<Answer>;

async function listenerFor(
  adapter: Adapter,
  engine: HTTPCacheMiddleware<never>,
  run: Run,
  isHttp2: boolean,
): Promise<RequestListener> {
  if (adapter === "fetch") return bridge(fetchCache(engine as never)((request) => fetchAnswer(run, request)));
  if (adapter === "hono") {
    const app = new Hono();
    app.use(honoCache(engine as never, app));
    app.all("*", (context) => fetchAnswer(run, context.req.raw));
    return getRequestListener(app.fetch) as RequestListener;
  }
  if (adapter === "fastify") {
    // The types tell apart what a variable decides.
    const app = Fastify({ exposeHeadRoutes: false, http2: isHttp2 as false });
    app.addHttpMethod("M-SEARCH");
    app.register(fastifyCache(engine as never));
    app.all("*", async ({ method, url, headers: sent }, reply) => {
      const { status = 200, headers = {}, body } = await run(method, url, sent as Seen["headers"]);
      reply.code(status).headers(headers as Record<string, string | string[]>);
      return reply.send(body);
    });
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  }
  if (adapter === "koa") {
    const app = new Koa();
    app.silent = true;
    app.use(koaCache(engine as never));
    app.use(async (context) => {
      const { method, url, headers: sent } = context;
      const { status = 200, headers = {}, body } = await run(method, url, sent as Seen["headers"]);
      context.status = status;
      context.body = body instanceof Uint8Array ? Buffer.from(body) : (body ?? null);
      for (const [name, value] of Object.entries(headers)) context.set(name, value as string | string[]);
      context.status = status;
    });
    return app.callback();
  }
  const listener: RequestListener = async (request, response) => {
    const headers = request.headers as Seen["headers"];
    const { status = 200, headers: fields = {}, body } = await run(request.method!, request.url!, headers);
    response.writeHead(status, fields as Record<string, string>);
    if (body instanceof Readable) pipeline(body, response, () => {});
    else response.end(body);
  };
  if (adapter === "node") return nodeCache(engine as never)(listener) as RequestListener;
  const app = express();
  app.use(expressCache(engine as never));
  app.use(listener);
  return app;
}

async function fetchAnswer(run: Run, request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const {
    status = 200,
    headers = {},
    body,
  } = await run(request.method, pathname + search, Object.fromEntries(request.headers));
  const list = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((line) => [name, line]));
  const given = body instanceof Readable ? Readable.toWeb(body) : (body ?? "");
  const content = status === 204 || status === 304 ? null : given;
  return new Response(content as string | null, { status, headers: list as [string, string][] });
}

/** Serves a fetch handler over node:http. */
export function bridge(handler: (request: Request) => Promise<Response>): RequestListener {
  return async (request, response) => {
    const { method = "GET", rawHeaders } = request;
    const headers = new Headers();
    for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!);
    const url = `http://${request.headers.host}${request.url}`;
    if (!URL.canParse(url) || new URL(url).username !== "") return void response.writeHead(400).end();
    const answer = await handler(new Request(url, { method, headers }));
    const fields = [...answer.headers].flat();
    response.writeHead(answer.status, answer.statusText, fields as never);
    try {
      if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk);
      response.end();
    } catch {
      response.destroy();
    }
  };
}

/** The port of a server that is closed when the test is over. */
export async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** As `listen`, with HTTP/2. */
export async function listenHttp2(listener: RequestListener): Promise<number> {
  const server = createHttp2Server(listener as never);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

export function ask(
  port: number,
  path: string,
  { method = "GET", headers = {}, body, agent }: Ask = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path,
        method,
        headers: { host: "site.test", ...headers },
        agent: agent ?? false,
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("aborted", () => reject(new Error("the response was cut off")));
        response.on("end", () => {
          const bytes = Buffer.concat(chunks);
          const { statusCode: status, statusMessage: message, headers } = response;
          resolve({ status: status!, message: message!, headers, bytes, body: bytes.toString() });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** A field of a framework's own request. */
export function headerOf(native: unknown, name: string): string | undefined {
  const { req, headers } = native as {
    req?: { header?: (name: string) => string | undefined };
    headers: Headers | Record<string, string>;
  };
  if (req?.header !== undefined) return req.header(name);
  return headers instanceof Headers ? (headers.get(name) ?? undefined) : headers[name];
}

/** A handler that counts its calls in the body. */
export const counting =
  (headers: Answer["headers"] = {}, rest: Omit<Answer, "headers" | "body"> = {}): Script =>
  ({ call }) => ({ ...rest, headers, body: `answer ${call}` });
