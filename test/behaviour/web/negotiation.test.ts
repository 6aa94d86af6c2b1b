// Encodings, conditions and ranges with the real middleware that implements them, inside and outside of the cache: two clients,
// of which one accepts gzip, get on every visit what the same application sends without the cache.
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { Agent, type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import fastifyCompress from "@fastify/compress";
import fastifyStatic from "@fastify/static";
import { getRequestListener } from "@hono/node-server";
import { serveStatic as honoStatic } from "@hono/node-server/serve-static";
import compression from "compression";
import express, { type RequestHandler } from "express";
import express4 from "express-4";
import Fastify, { type FastifyInstance } from "fastify";
import { Hono, type MiddlewareHandler } from "hono";
import { compress } from "hono/compress";
import { etag } from "hono/etag";
import Koa from "koa";
import Koa2 from "koa-2";
import koaCompress from "koa-compress";
import koaStatic from "koa-static";
import serveStatic from "serve-static";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as honoCache } from "../../../src/web/hono.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, type Got, listen } from "./subject.ts";
import type { Place } from "./visits.ts";

const TEXT = "0123456789".repeat(300);
const MAX_AGE_MS = 60_000;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "xcache-negotiation-"));
  writeFileSync(join(folder, "file.txt"), TEXT);
  // A second of its own, so that a condition on the time holds.
  utimesSync(join(folder, "file.txt"), 1_700_000_000, 1_700_000_000);
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Row {
  readonly serve: (place: Place) => RequestListener | Promise<RequestListener>;
  /** Whether the path is that of a file. Without: a page that a handler sends. */
  readonly isFile: boolean;
  /** Whether files have routes, which are behind the cache wherever they are registered. */
  readonly isRouted?: boolean;
}

const options = () => ({ cache: memoryCache().cache, ttl: 300, varyCookie: false });

const onExpress =
  (middleware: () => RequestHandler[], create = express): Row["serve"] =>
  (place) => {
    const app = create();
    if (place === "inside") app.use(expressCache(options()));
    for (const each of middleware()) app.use(each);
    if (place === "outside") app.use(expressCache(options()));
    app.get("/page", (_request, response) => void response.type("text").send(TEXT));
    return app;
  };

const onFastify =
  (plugins: (app: FastifyInstance) => void): Row["serve"] =>
  async (place) => {
    const app = Fastify();
    if (place === "inside") app.register(fastifyCache(options()));
    plugins(app);
    if (place === "outside") app.register(fastifyCache(options()));
    app.after(() => {
      app.get("/page", async (_request, reply) => reply.type("text/plain").send(TEXT));
    });
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  };

const onKoa =
  (middleware: () => Koa.Middleware[], Application = Koa): Row["serve"] =>
  (place) => {
    const app = new Application();
    app.silent = true;
    if (place === "inside") app.use(koaCache(options()));
    for (const each of middleware()) app.use(each);
    if (place === "outside") app.use(koaCache(options()));
    app.use((context) => {
      if (context.path === "/page") context.body = TEXT;
    });
    return app.callback();
  };

const onHono =
  (middleware: () => MiddlewareHandler[]): Row["serve"] =>
  (place) => {
    const app = new Hono();
    if (place === "inside") app.use(honoCache(options(), app));
    for (const each of middleware()) app.use(each);
    if (place === "outside") app.use(honoCache(options(), app));
    app.get("/page", (context) => context.text(TEXT));
    return getRequestListener(app.fetch) as RequestListener;
  };

const expressFiles = () => serveStatic(folder, { maxAge: MAX_AGE_MS }) as RequestHandler;
const koaFiles = () => koaStatic(folder, { maxage: MAX_AGE_MS }) as Koa.Middleware;
const koaPacks = () => koaCompress({ threshold: 0, br: false }) as Koa.Middleware;
const fastifyFiles = (app: FastifyInstance) =>
  void app.register(fastifyStatic, { root: folder, wildcard: false, maxAge: MAX_AGE_MS });
const fastifyPacks = (app: FastifyInstance) => void app.register(fastifyCompress, { threshold: 0 });

const page = (serve: Row["serve"]): Row => ({ serve, isFile: false });
const file = (serve: Row["serve"]): Row => ({ serve, isFile: true });

/** The server of Hono replaces the global Request and Response, so it comes last. */
const ROWS: Record<string, Row> = {
  compression: page(onExpress(() => [compression({ threshold: 0 })])),
  "compression on Express 4": page(onExpress(() => [compression({ threshold: 0 })], express4)),
  "serve-static": file(onExpress(() => [expressFiles()])),
  "serve-static on Express 4": file(onExpress(() => [expressFiles()], express4)),
  "serve-static behind compression": file(onExpress(() => [compression({ threshold: 0 }), expressFiles()])),
  "@fastify/compress": page(onFastify(fastifyPacks)),
  "@fastify/static": { ...file(onFastify(fastifyFiles)), isRouted: true },
  "@fastify/static behind @fastify/compress": {
    ...file(
      onFastify((app) => {
        fastifyPacks(app);
        fastifyFiles(app);
      }),
    ),
    isRouted: true,
  },
  "koa-compress": page(onKoa(() => [koaPacks()])),
  "koa-compress on Koa 2": page(onKoa(() => [koaPacks()], Koa2)),
  "koa-static": file(onKoa(() => [koaFiles()])),
  "koa-static on Koa 2": file(onKoa(() => [koaFiles()], Koa2)),
  "koa-static behind koa-compress": file(onKoa(() => [koaPacks(), koaFiles()])),
  "hono/compress": page(onHono(() => [compress({ threshold: 0 })])),
  "hono/etag": page(onHono(() => [etag()])),
  "hono/etag behind hono/compress": page(onHono(() => [compress({ threshold: 0 }), etag()])),
  "hono/compress behind hono/etag": page(onHono(() => [etag(), compress({ threshold: 0 })])),
  "serveStatic of Hono": file(onHono(() => [honoStatic({ root: folder }) as MiddlewareHandler])),
  "serveStatic of Hono behind hono/etag": file(
    onHono(() => [etag(), honoStatic({ root: folder }) as MiddlewareHandler]),
  ),
};

type Fields = Record<string, string>;

const CLIENTS: Readonly<Record<string, Fields>> = {
  packed: { "accept-encoding": "gzip" },
  plain: {},
};

/** Requests of one client, which has got `held` before. */
const ASKS: Record<string, (held: Got) => Fields | undefined> = {
  GET: () => ({}),
  HEAD: () => ({}),
  "If-None-Match": ({ headers }) =>
    headers.etag === undefined ? undefined : { "if-none-match": headers.etag },
  "another If-None-Match": () => ({ "if-none-match": '"another"' }),
  "If-Modified-Since": ({ headers }) =>
    headers["last-modified"] === undefined ? undefined : { "if-modified-since": headers["last-modified"] },
};

/** Conditions that hold. */
const HELD = ["If-None-Match", "If-Modified-Since"];

const FILE_ASKS: typeof ASKS = {
  "a range": () => ({ range: "bytes=2-4" }),
  "a range of the end": () => ({ range: "bytes=-5" }),
  "two ranges": () => ({ range: "bytes=0-1,4-5" }),
  "a range of another version": () => ({ range: "bytes=2-4", "if-range": '"another"' }),
  "a range of this time": ({ headers }) =>
    headers["last-modified"] === undefined
      ? undefined
      : { range: "bytes=2-4", "if-range": headers["last-modified"] },
};

/** Fields of the connection, of one moment or of the cache, and how a body is framed. */
const NOT_COMPARED = new Set([
  ...["age", "cache-status", "connection", "content-length", "date", "keep-alive", "transfer-encoding"],
]);

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** What a client makes of a response. */
function seen({ status, headers, bytes }: Got): Seen {
  const isPacked = headers["content-encoding"] === "gzip" && bytes.length > 0 && status === 200;
  const fields = Object.entries(headers).filter(([name]) => !NOT_COMPARED.has(name));
  return {
    status,
    headers: Object.fromEntries(fields.toSorted(([one], [other]) => (one < other ? -1 : 1))),
    body: (isPacked ? gunzipSync(bytes) : bytes).toString("latin1"),
  };
}

/** Fields in which one kind of response may differ from that of the application. */
const UNLIKE: Readonly<Record<number | string, readonly string[]>> = {
  // Some give every part its own tag.
  206: ["etag"],
  // Some compress what is not there, or give what is compressed another tag; what is outside adds to whole responses only.
  304: ["content-encoding", "etag", "vary"],
  // A stored response to GET answers it, which was compressed.
  HEAD: ["content-encoding", "etag", "vary"],
};

function without({ headers, ...rest }: Seen, names: readonly string[] = []): Seen {
  const kept = Object.entries(headers).filter(([name]) => !names.includes(name));
  return { ...rest, headers: Object.fromEntries(kept) };
}

/** The cache adds a lifetime and an ETag where there are none, and its own comes first for middleware outside of it. */
function withAdded(expected: Seen, got: Seen, place: Place): Seen {
  const headers = { ...expected.headers };
  for (const name of ["etag", "cache-control"]) {
    const isOwn = headers[name] === undefined || (name === "etag" && place === "outside");
    if (isOwn && got.headers[name] !== undefined) headers[name] = got.headers[name];
  }
  return { ...expected, headers };
}

/** Whether the cache does for an application what that cannot do: answer a condition that it invited, or send a part. */
function isExtra(what: string, expected: Seen, got: Seen): boolean {
  // Hono sends a part although the condition does not hold, and calls the whole a part of itself.
  const isMistaken = what === "two ranges" || what === "a range of another version";
  if (isMistaken && expected.status === 206) return got.status === 200;
  if (expected.status !== 200) return false;
  return (HELD.includes(what) && got.status === 304) || (what in FILE_ASKS && got.status === 206);
}

const isHit = ({ headers }: Got): boolean => String(headers["cache-status"]).startsWith("xcache; hit");

describe.each(Object.entries(ROWS))("%s", (_, { serve, isFile, isRouted = false }) => {
  const path = isFile ? "/file.txt" : "/page";
  const asks = Object.entries(isFile ? { ...ASKS, ...FILE_ASKS } : ASKS);
  // Outside, the file is sent before the cache is reached.
  const isCachedIn = (place: Place): boolean => !isFile || isRouted || place === "inside";

  async function open(place: Place) {
    const [bare, cached] = [await listen(await serve("without the cache")), await listen(await serve(place))];
    // A client that closes its connection may be gone before the handler has ended.
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    /** What the client gets from both, each with the fields that belong to what it got from it before. */
    return async (name: string, what: string, fields: readonly [Fields, Fields] = [{}, {}]) => {
      const method = what === "HEAD" ? what : "GET";
      const [bareHeaders, headers] = fields.map((own) => ({ ...CLIENTS[name], ...own }));
      const expected = await ask(bare, path, { method, headers: bareHeaders!, agent });
      const got = await ask(cached, path, { method, headers: headers!, agent });
      const [own, other] = [seen(got), seen(expected)];
      if (!isExtra(what, other, own)) {
        const unlike = UNLIKE[method] ?? UNLIKE[other.status];
        const wanted = without(withAdded(other, own, place), unlike);
        const compared = without(own, unlike);
        // A 304 may have more fields of the response that it is about.
        if (other.status === 304) expect(compared, `${what} by ${name}`).toMatchObject(wanted);
        else expect(compared, `${what} by ${name}`).toEqual(wanted);
      }
      return [expected, got] as const;
    };
  }

  test.each([
    ["outside", ["plain", "packed"]],
    ["outside", ["packed", "plain"]],
    ["inside", ["plain", "packed"]],
    ["inside", ["packed", "plain"]],
  ] as const)("%s of the cache, for clients that come in the order %j", async (place, order) => {
    const visit = await open(place);
    const held = new Map<string, readonly [Got, Got]>();
    for (const name of order) held.set(name, await visit(name, "first visit"));
    for (const [what, fieldsFor] of asks) {
      for (const name of order) {
        const [bareFields, fields] = held.get(name)!.map(fieldsFor);
        if (bareFields === undefined) continue;
        const [, got] = await visit(name, what, [bareFields, fields!]);
        // Parts of a compressed response are for the application to make.
        const isPacked = held.get(name)![1].headers["content-encoding"] === "gzip" && "range" in fields!;
        if (!isPacked) expect(isHit(got), `${what} by ${name} is a hit`).toBe(isCachedIn(place));
      }
    }
  });

  const conditions = ["If-None-Match", "another If-None-Match", "If-Modified-Since"];
  test.each(["outside", "inside"].flatMap((place) => conditions.map((what) => [place, what] as const)))(
    "%s of the cache, %s of the request that fills it",
    async (place, what) => {
      for (const name of Object.keys(CLIENTS)) {
        const before = await open(place as Place);
        const held = await before(name, "first visit");
        const [bareFields, fields] = held.map(ASKS[what]!);
        if (bareFields === undefined) continue;
        const visit = await open(place as Place);
        await visit(name, what, [bareFields, fields!]);
        const [, again] = await visit(name, what, [bareFields, fields!]);
        const [, got] = await visit(name, "GET");
        expect([again, got].map(isHit)).toEqual([isCachedIn(place as Place), isCachedIn(place as Place)]);
      }
    },
  );
});
