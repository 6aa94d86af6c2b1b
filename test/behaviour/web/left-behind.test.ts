// An unsafe request whose client leaves before its response has changed what it has changed.
import {
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { connect, constants } from "node:http2";
import express from "express";
import express4 from "express-4";
import Fastify from "fastify";
import Fastify4 from "fastify-4";
import Koa from "koa";
import Koa2 from "koa-2";
import { describe, expect, onTestFinished, test } from "vitest";
import { settle } from "../../../src/testing/manual-clock.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { moment } from "../../support/moment.ts";
import { until } from "../../support/until.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, listen, listenHttp2 } from "./subject.ts";
import { askOnStream } from "./wire.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

type Answers = (method: string) => Promise<Answer>;
type Serve = (answers: Answers) => RequestListener | Promise<RequestListener>;

const options = () => ({ cache: memoryCache().cache, ttl: 300 });

const onNode: Serve = (answers) =>
  nodeCache(options())(async (request: IncomingMessage, response: ServerResponse) => {
    const { status, body } = await answers(request.method!);
    response.statusCode = status;
    response.end(body);
  }) as RequestListener;

const onExpress =
  (create: typeof express): Serve =>
  (answers) => {
    const app = create();
    app.use(expressCache(options()));
    app.use(async (request, response) => {
      const { status, body } = await answers(request.method);
      response.status(status).send(body);
    });
    return app;
  };

const onKoa =
  (Application: typeof Koa): Serve =>
  (answers) => {
    const app = new Application();
    app.use(koaCache(options()));
    app.use(async (context) => {
      const { status, body } = await answers(context.method);
      context.status = status;
      context.body = body;
    });
    return app.callback();
  };

const onFastify =
  (create: typeof Fastify, isHttp2 = false): Serve =>
  async (answers) => {
    const app = create({ http2: isHttp2 as false });
    app.register(fastifyCache(options()));
    app.all("*", async (request, reply) => {
      const { status, body } = await answers(request.method);
      return reply.code(status).send(body);
    });
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  };

/** Sends a POST whose client leaves when `leave` has come. */
type SendAndLeave = (port: number, leave: Promise<void>) => void;

const leaveHttp1: SendAndLeave = (port, leave) => {
  const headers = { host: "site.test" };
  const sent = httpRequest({ host: "127.0.0.1", port, path: "/", method: "POST", headers, agent: false });
  sent.on("error", () => {});
  sent.end();
  void leave.then(() => sent.destroy());
};

const leaveHttp2: SendAndLeave = (port, leave) => {
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const fields = { ":path": "/", ":method": "POST", ":authority": "site.test" };
  const sent = session.request(fields, { endStream: true });
  sent.on("error", () => {});
  void leave.then(() => sent.close(constants.NGHTTP2_CANCEL));
};

async function askHttp2(port: number): Promise<Answer> {
  const session = connect(`http://127.0.0.1:${port}`);
  const got = await askOnStream(session, "/", "GET", 10_000);
  session.destroy();
  return got;
}

describe.each([
  ["node", onNode, false],
  ["Express 5", onExpress(express), false],
  ["Express 4", onExpress(express4), false],
  ["Koa 3", onKoa(Koa), false],
  ["Koa 2", onKoa(Koa2), false],
  ["Fastify 5", onFastify(Fastify), false],
  ["Fastify 4", onFastify(Fastify4), false],
  ["node with HTTP/2", onNode, true],
  ["Koa with HTTP/2", onKoa(Koa), true],
  ["Fastify with HTTP/2", onFastify(Fastify, true), true],
] as const)("on %s", (_, serve, isHttp2) => {
  test.each([
    [200, "invalidates its page", "page 2"],
    [500, "and fails leaves its page alone", "page 1"],
  ])("a POST with status %i whose client has left %s", async (status, _effect, expected) => {
    const [called, left, mayEnd, over] = [moment(), moment(), moment(), moment()];
    let version = 1;
    const listener = await serve(async (method) => {
      if (method !== "POST") return { status: 200, body: `page ${version}` };
      called.let();
      await mayEnd.come;
      version++;
      setImmediate(over.let);
      return { status, body: "changed" };
    });
    const watched: RequestListener = (request: IncomingMessage, response) => {
      if (request.method === "POST") request.socket.once("close", left.let);
      void listener(request, response);
    };
    const port = await (isHttp2 ? listenHttp2 : listen)(watched);
    const get = async () => (await (isHttp2 ? askHttp2(port) : ask(port, "/"))).body;
    expect([await get(), await get()]).toEqual(["page 1", "page 1"]);
    (isHttp2 ? leaveHttp2 : leaveHttp1)(port, called.come);
    await left.come;
    mayEnd.let();
    await over.come;
    await settle();
    if (expected !== "page 1")
      await until(async () => (await get()) === expected, { what: "the new page", timeoutMs: 3_000 });
    expect(await get()).toBe(expected);
  });
});
