// Clients that misbehave, all at once: they leave before, during and after a response, read slowly, close their half, send
// requests ahead and reset streams. Afterwards every URL answers as the same server without the cache does.
import { writeFileSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OwnProcess } from "../../support/own-process.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { runFolder } from "../../support/run-folder.ts";
import { until } from "../../support/until.ts";

const ADAPTERS = [
  "node",
  "express",
  "koa",
  "fastify",
  "hono",
  "http2",
  "koa on http2",
  "fastify on http2",
  "hono on http2",
] as const;
type Adapter = (typeof ADAPTERS)[number];

const KINDS = ["small", "late", "big", "stream", "file", "broken"] as const;

/** One server for each adapter and store; the test only has clients. */
const PROGRAM = `
import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { pipeline, Readable } from "node:stream";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { httpCache as expressCache } from "./web/express.js";
import { httpCache as fastifyCache } from "./web/fastify.js";
import { httpCache as honoCache } from "./web/hono.js";
import { httpCache as koaCache } from "./web/koa.js";
import { httpCache as nodeCache } from "./web/node.js";
import { XCache } from "./index.js";

/** Bodies that a handler has begun to make and not yet finished or given up. */
const open = new Set();

function streamed(url, parts, error) {
  async function* make() {
    for (let at = 0; at < parts; at++) {
      await nextTurn();
      yield Buffer.from((url + " ").repeat(500));
    }
    if (error !== undefined) throw error;
  }
  return Readable.from(make(), { objectMode: false });
}

/** Without a cache, too, node:http forgets responses to requests that were sent ahead when their connection is lost. */
function counted(stream, headers) {
  if (headers["x-ahead"]) return stream;
  open.add(stream);
  stream.once("close", () => open.delete(stream));
  return stream;
}

/** Text or a stream. */
async function page(url, headers) {
  const kind = url.split("/")[1];
  if (kind === "late") await pause(20);
  if (kind === "big") return (url + " ").repeat(20_000);
  if (kind === "stream") return counted(streamed(url, 6), headers);
  if (kind === "broken") return counted(streamed(url, 3, new Error("broken on purpose")), headers);
  if (kind === "file") return counted(createReadStream(settings.file), headers);
  return "page " + url;
}

const TYPE = "text/plain; charset=utf-8";

async function listener({ url, headers }, response) {
  const made = await page(url, headers);
  response.setHeader("content-type", TYPE);
  if (typeof made === "string") response.end(made);
  else pipeline(made, response, () => {});
}

function koa(engine) {
  const app = new Koa();
  app.silent = true;
  if (engine) app.use(koaCache(engine));
  app.use(async (context) => {
    const made = await page(context.url, context.headers);
    context.type = TYPE;
    context.body = made;
  });
  return app.callback();
}

async function fastify(options, http2) {
  const app = Fastify({ http2 });
  if (options) app.register(fastifyCache(options));
  app.get("*", async (request, reply) => reply.type(TYPE).send(await page(request.url, request.headers)));
  await app.ready();
  return app.server;
}

function hono(options) {
  const app = new Hono();
  if (options) app.use(honoCache(options, app));
  app.get("*", async (context) => {
    const made = await page(context.req.path, context.req.header());
    return context.body(typeof made === "string" ? made : Readable.toWeb(made), 200, { "content-type": TYPE });
  });
  return getRequestListener(app.fetch);
}

const BUILD = {
  node: async (options) => createServer(options ? nodeCache(options)(listener) : listener),
  http2: async (options) => createHttp2Server(options ? nodeCache(options)(listener) : listener),
  koa: async (options) => createServer(koa(options)),
  "koa on http2": async (options) => createHttp2Server(koa(options)),
  express: async (options) => {
    const app = express();
    if (options) app.use(expressCache(options));
    app.get("/file/:number", (request, response) => response.type(TYPE).sendFile(settings.file, () => {}));
    app.use(listener);
    return createServer(app);
  },
  fastify: (options) => fastify(options, false),
  "fastify on http2": (options) => fastify(options, true),
  hono: async (options) => createServer(hono(options)),
  "hono on http2": async (options) => createHttp2Server(hono(options)),
};

const ports = {};
for (const [store, kvUrl] of Object.entries(settings.stores)) {
  ports[store] = {};
  for (const name of Object.keys(BUILD)) {
    // The adapters answer with different fields of their own, so each has its own entries.
    const cache = kvUrl && new XCache({ kvUrl, keyPrefix: name.replaceAll(" ", "-"), operationTimeout: 5 });
    const server = await BUILD[name](cache && { cache, ttl: 300 });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    ports[store][name] = server.address().port;
  }
}
process.on("message", () => say("open", { count: open.size }));
say("ready", { ports });
`;

type Ports = Record<string, Record<Adapter, number>>;

let redis: RedisServer;
const processes: OwnProcess[] = [];
const ports: Ports[] = [];

beforeAll(async () => {
  redis = await startRedis();
  // In the folder of the run: these processes are killed, and remove nothing.
  const file = join(runFolder(), "clients.txt");
  writeFileSync(file, "a line of the file\n".repeat(2_000));
  for (const stores of [{ bare: "", memory: "memory://", redis: redis.url }, { redis: redis.url }]) {
    processes.push(new OwnProcess(PROGRAM, { settings: { stores, file } }));
  }
  for (const each of processes) ports.push((await each.heard("ready")).ports as Ports);
});
afterAll(async () => {
  for (const each of processes) await each.kill();
  await redis.stop();
});

/** One connection that does what it wants; resolves when it is closed. */
type Behaviour = (port: number, path: string) => Promise<void>;

const ask = (path: string, ...fields: string[]): string =>
  [`GET ${path} HTTP/1.1`, "host: site.test", ...fields, "", ""].join("\r\n");
const last = (path: string): string => ask(path, "connection: close");
const AHEAD = "x-ahead: 1";

function client(port: number, act: (socket: Socket) => void): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    socket.on("end", () => socket.end());
    socket.on("connect", () => act(socket));
  });
}

const BEHAVIOURS: Record<string, Behaviour> = {
  "leaves before": (port, path) =>
    client(port, (socket) => socket.write(ask(path), () => socket.resetAndDestroy())),
  "leaves a little later": (port, path) =>
    client(port, (socket) => {
      socket.write(ask(path));
      setTimeout(() => socket.resetAndDestroy(), 5);
    }),
  "leaves during": (port, path) =>
    client(port, (socket) => {
      socket.once("data", () => socket.resetAndDestroy());
      socket.write(ask(path));
    }),
  "leaves after": (port, path) =>
    client(port, (socket) => {
      socket.resume().once("end", () => socket.destroy());
      socket.write(last(path));
    }),
  "reads slowly": (port, path) =>
    client(port, (socket) => {
      socket.on("data", () => {
        socket.pause();
        setTimeout(() => socket.resume(), 3);
      });
      socket.write(last(path));
    }),
  "never reads": (port, path) =>
    client(port, (socket) => {
      socket.pause().write(ask(path));
      setTimeout(() => socket.resetAndDestroy(), 100);
    }),
  "closes its half": (port, path) => client(port, (socket) => socket.resume().end(ask(path))),
  "asks ahead": (port, path) =>
    client(port, (socket) => socket.resume().write(ask(path, AHEAD) + ask(`${path}0`, AHEAD) + last(path))),
  "asks ahead and leaves": (port, path) =>
    client(port, (socket) => {
      socket.once("data", () => socket.resetAndDestroy());
      socket.write(ask(path, AHEAD) + ask(path, AHEAD) + ask(`${path}0`, AHEAD));
    }),
  "sends half a request": (port, path) =>
    client(port, (socket) => socket.write(ask(path).slice(0, -4), () => socket.resetAndDestroy())),
};

/** Many streams share a session; some sessions end in the middle. */
const STREAMS: Record<string, (session: ClientHttp2Session, path: string) => Promise<void>> = {
  "resets before": (session, path) => stream(session, path, (one) => one.close(constants.NGHTTP2_CANCEL)),
  "resets during": (session, path) =>
    stream(session, path, (one) => one.once("data", () => one.close(constants.NGHTTP2_CANCEL))),
  "resets after the head": (session, path) =>
    stream(session, path, (one) => one.once("response", () => one.close(constants.NGHTTP2_INTERNAL_ERROR))),
  "reads all": (session, path) => stream(session, path, (one) => one.resume()),
  "reads slowly": (session, path) =>
    stream(session, path, (one) =>
      one.on("data", () => {
        one.pause();
        setTimeout(() => one.resume(), 3);
      }),
    ),
  "leaves with its session": (session, path) =>
    stream(session, path, (one) => one.once("response", () => session.destroy())),
};

type Stream = ReturnType<ClientHttp2Session["request"]>;

function stream(session: ClientHttp2Session, path: string, act: (one: Stream) => void): Promise<void> {
  if (session.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const one = session.request({ ":path": path, ":authority": "site.test" });
    one.on("error", () => {});
    one.on("close", () => resolve());
    act(one);
  });
}

function sessionWith(port: number): ClientHttp2Session {
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  return session;
}

interface Got {
  readonly end: "whole" | "broken" | "hung";
  readonly status?: unknown;
  readonly type?: unknown;
  readonly reset?: number | undefined;
  readonly length?: number;
  readonly body: string;
}

const HUNG_MS = 3_000;

function get(port: number, path: string, agent: Agent): Promise<Got> {
  return new Promise((resolve) => {
    let body = "";
    let head: { status?: unknown; type?: unknown } = {};
    const got = (end: Got["end"]) => (): void => {
      // How much of a broken body arrives is up to the connection.
      resolve({ end, ...head, body: end === "whole" ? body : "" });
      sent.destroy();
    };
    const headers = { host: "site.test" };
    const sent = httpRequest({ host: "127.0.0.1", port, path, agent, headers }, (response) => {
      head = { status: response.statusCode, type: response.headers["content-type"] };
      response.setEncoding("latin1").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ end: "whole", ...head, body }));
      response.on("error", got("broken"));
    });
    sent.on("error", got("broken"));
    sent.setTimeout(soon(HUNG_MS), got("hung"));
    sent.end();
  });
}

function getStream(session: ClientHttp2Session, path: string): Promise<Got> {
  return new Promise((resolve) => {
    let body = "";
    let head: { status?: unknown; type?: unknown } = {};
    const one = session.request({ ":path": path, ":authority": "site.test" });
    one.setEncoding("latin1");
    one.on("response", (fields) => {
      head = { status: fields[":status"], type: fields["content-type"] };
    });
    one.on("data", (text: string) => {
      body += text;
    });
    one.on("error", () => {});
    one.on("close", () => {
      const isWhole = one.rstCode === constants.NGHTTP2_NO_ERROR;
      // Fastify resets the stream of a body that fails without an error code, so that it seems to have ended.
      const isCut = !isWhole || path.startsWith("/broken");
      // The code tells what has cut a body that is whole without the cache.
      const reset = isWhole || path.startsWith("/broken") ? {} : { reset: one.rstCode, length: body.length };
      resolve({ end: isWhole ? "whole" : "broken", ...reset, ...head, body: isCut ? "" : body });
    });
    one.setTimeout(soon(HUNG_MS), () => {
      resolve({ end: "hung", ...head, body: "" });
      one.close();
    });
  });
}

/** At once, at least. */
const CLIENTS = 500;

/** Every URL is asked for by each of these first, while others do something else with it. */
function plan(behaviours: readonly string[]): { readonly path: string; readonly behaviour: string }[] {
  const clients = [];
  for (let place = 0; clients.length < CLIENTS; place++) {
    for (const [at, kind] of KINDS.entries()) {
      for (let number = 0; number < behaviours.length; number++) {
        const behaviour = behaviours[(number + place * (at + 1)) % behaviours.length]!;
        clients.push({ path: `/${kind}/${number}`, behaviour });
      }
    }
  }
  return clients;
}

async function misbehave(adapter: Adapter, targets: readonly number[]): Promise<string[]> {
  const isHttp2 = adapter.endsWith("http2");
  const clients = plan(Object.keys(isHttp2 ? STREAMS : BEHAVIOURS));
  const sessions = targets.map((port) => sessionWith(port));
  await Promise.all(
    clients.map(({ path, behaviour }, at) => {
      const port = targets[at % targets.length]!;
      if (!isHttp2) return BEHAVIOURS[behaviour]!(port, path);
      const own =
        behaviour === "leaves with its session" ? sessionWith(port) : sessions[at % targets.length]!;
      return STREAMS[behaviour]!(own, path);
    }),
  );
  for (const session of sessions) session.destroy();
  return [...new Set(clients.map(({ path }) => path))];
}

/** What each URL answers, asked for at the same time. */
async function answers(adapter: Adapter, port: number, paths: readonly string[]): Promise<[string, Got][]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  const session = adapter.endsWith("http2") ? sessionWith(port) : undefined;
  const got = await Promise.all(
    paths.map(async (path): Promise<[string, Got]> => {
      return [path, await (session === undefined ? get(port, path, agent) : getStream(session, path))];
    }),
  );
  agent.destroy();
  session?.destroy();
  return got;
}

async function openHandlers(): Promise<number> {
  let count = 0;
  for (const each of processes) {
    each.tell();
    count += (await each.heard("open")).count as number;
  }
  return count;
}

describe.each(ADAPTERS)("on %s", (adapter) => {
  test.each([
    ["memory", "memory", 1],
    ["Redis with two processes", "redis", 2],
  ] as const)(
    "after clients that misbehave, every URL on %s answers as without the cache",
    async (_, store, count) => {
      const targets = ports.slice(0, count).map((each) => each[store]![adapter]);
      const paths = await misbehave(adapter, targets);
      const expected = await answers(adapter, ports[0]!.bare![adapter], paths);
      for (const port of [targets[0]!, targets.at(-1)!])
        expect(await answers(adapter, port, paths)).toEqual(expected);
      await until(async () => (await openHandlers()) === 0, {
        what: "every handler has ended",
        timeoutMs: 3_000,
      });
    },
  );
});
