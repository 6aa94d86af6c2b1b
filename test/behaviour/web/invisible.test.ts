// The cache is invisible: a handler and the middleware around it see the same response object, and a client gets the same
// response, as without it.
import {
  createServer,
  request as httpRequest,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import fc from "fast-check";
import Fastify from "fastify";
import Koa from "koa";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MemoryBackend } from "../../../src/backends/memory/backend.ts";
import { HTTPCacheMiddleware } from "../../../src/web/engine/engine.ts";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { httpCache as nodeCache } from "../../../src/web/node.ts";
import { XCache } from "../../../src/xcache.ts";
import { soon } from "../../support/pace.ts";
import { applyPatches, type Program, perform, program, type Trace } from "./programs.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 2_000);
/** Programs that run at the same time, at most. */
const AT_ONCE = 40;
/** Fixed, so that a run can be repeated; another one draws other programs. */
const SEED = Number(process.env.XCACHE_TEST_SEED ?? 1);

/** What one client got. */
interface Got {
  readonly end: "whole" | "broken" | "hung";
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Fields that belong to the cache or to the connection, and how a body is framed. */
const NOT_COMPARED = new Set([
  "age",
  "cache-status",
  "connection",
  "content-length",
  "date",
  "etag",
  "keep-alive",
  "trailer",
  "transfer-encoding",
]);

function ask(port: number, path: string, method: string): Promise<Got> {
  return new Promise((resolve) => {
    const broken = { end: "broken", status: 0, message: "", headers: {}, body: "" } as const;
    const sent = httpRequest(
      { host: "127.0.0.1", port, path, method, agent: false, headers: { host: "site.test" } },
      (response) => {
        const parts: Buffer[] = [];
        const headers = Object.fromEntries(
          Object.entries(response.headers).filter(([field]) => !NOT_COMPARED.has(field)),
        );
        const got = (end: Got["end"]): Got => ({
          end,
          status: response.statusCode ?? 0,
          message: response.statusMessage ?? "",
          headers,
          body: Buffer.concat(parts).toString("latin1"),
        });
        response.on("data", (data: Buffer) => parts.push(data));
        response.on("end", () => resolve(got("whole")));
        response.on("error", () => resolve(broken));
      },
    );
    sent.on("error", () => resolve(broken));
    sent.setTimeout(soon(1_000), () => {
      resolve({ ...broken, end: "hung" });
      sent.destroy();
    });
    sent.end();
  });
}

/** One server that runs whatever program its path names. */
class Stage {
  readonly programs = new Map<string, Program>();
  readonly traces = new Map<string, Trace>();
  readonly #runs = new Map<string, Promise<void>>();
  port = 0;

  programOf(url: string): Program {
    const found = this.programs.get(url);
    if (found === undefined) throw new Error(`no program for ${url}`);
    return found;
  }

  /** Runs the program of this URL. A response may arrive before its program is over. */
  run(url: string, response: ServerResponse, next?: (error?: unknown) => void): Promise<void> {
    const trace: Trace = [];
    this.traces.set(url, trace);
    const run = perform(this.programOf(url), response, trace, next);
    this.#runs.set(
      url,
      run.catch(() => {}),
    );
    return run;
  }

  async traceOf(url: string): Promise<Trace | undefined> {
    await this.#runs.get(url);
    return this.traces.get(url);
  }
}

type Build = (
  stage: Stage,
  engine: HTTPCacheMiddleware<never> | undefined,
) => RequestListener | Promise<RequestListener>;

const ADAPTERS: Record<string, Build> = {
  node: (stage, engine) => {
    const inner: RequestListener = (request, response) => {
      const own = stage.programOf(request.url!);
      applyPatches(response, own.inner, "inner");
      stage.run(request.url!, response).catch(() => response.destroy());
    };
    const cached = engine === undefined ? inner : (nodeCache(engine as never)(inner) as RequestListener);
    return (request, response) => {
      applyPatches(response, stage.programOf(request.url!).outer, "outer");
      cached(request, response);
    };
  },
  express: (stage, engine) => {
    const app = express();
    // Error pages without a stack.
    app.set("env", "production");
    app.use((request, response, next) => {
      applyPatches(response, stage.programOf(request.url).outer, "outer");
      next();
    });
    if (engine !== undefined) app.use(expressCache(engine as never));
    app.use((request, response, next) => {
      applyPatches(response, stage.programOf(request.url).inner, "inner");
      next();
    });
    app.use((request, response, next) => stage.run(request.url, response, next));
    app.use(
      (_error: Error, _request: express.Request, response: express.Response, next: express.NextFunction) => {
        if (response.headersSent) next(_error);
        else response.status(500).type("text").send("failed");
      },
    );
    return app;
  },
  fastify: async (stage, engine) => {
    const app = Fastify({ exposeHeadRoutes: false });
    app.addHook("onRequest", (request, reply, done) => {
      applyPatches(reply.raw, stage.programOf(request.url).outer, "outer");
      done();
    });
    if (engine !== undefined) app.register(fastifyCache(engine as never));
    app.all("*", (request, reply) => {
      reply.hijack();
      applyPatches(reply.raw, stage.programOf(request.url).inner, "inner");
      stage.run(request.url, reply.raw).catch(() => reply.raw.destroy());
    });
    await app.ready();
    return app.routing;
  },
  koa: (stage, engine) => {
    const app = new Koa();
    app.silent = true;
    app.use((context, next) => {
      applyPatches(context.res, stage.programOf(context.url).outer, "outer");
      return next();
    });
    if (engine !== undefined) app.use(koaCache(engine as never));
    app.use(async (context) => {
      const own = stage.programOf(context.url);
      applyPatches(context.res, own.inner, "inner");
      context.respond = false;
      await stage.run(context.url, context.res).catch(() => context.res.destroy());
    });
    return app.callback();
  },
};

describe.each(Object.entries(ADAPTERS))("on %s", (_name, build) => {
  const cache = new XCache({ backend: new MemoryBackend() });
  const bare = new Stage();
  const cached = new Stage();
  const servers: Server[] = [];
  beforeAll(async () => {
    // Express writes there what its handlers threw.
    vi.spyOn(console, "error").mockImplementation(() => {});
    const engine = new HTTPCacheMiddleware<never>({ cache, varyCookie: false });
    for (const stage of [bare, cached]) {
      const server = createServer(await build(stage, stage === bare ? undefined : engine));
      servers.push(server);
      await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
      stage.port = (server.address() as AddressInfo).port;
    }
  });
  afterAll(async () => {
    vi.restoreAllMocks();
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await cache.disconnect();
  });

  test("any program gives the same responses and sees the same response object", {
    timeout: 60_000,
  }, async () => {
    let runs = 0;
    const check = async (own: Program): Promise<void> => {
      const path = `/program-${runs++}`;
      for (const stage of [bare, cached]) stage.programs.set(path, own);
      const expected = await ask(bare.port, path, own.method);
      for (const visit of runs % 8 === 0 ? ["first", "second", "third"] : ["first", "second"]) {
        const got = await ask(cached.port, path, own.method);
        expect(got, `${visit} visit`).toEqual(expectedOf(expected, got));
        // A hit does not run the handler: the trace stays that of the visit that did.
        expect(await cached.traceOf(path), `trace of the ${visit} visit`).toEqual(await bare.traceOf(path));
      }
    };
    const property = fc.asyncProperty(
      fc.array(program, { minLength: 1, maxLength: AT_ONCE, size: "max" }),
      async (all) => {
        const outcomes = await Promise.allSettled(all.map(check));
        for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
      },
    );
    await fc.assert(property, {
      numRuns: Math.ceil((2 * PROGRAMS) / AT_ONCE),
      seed: SEED,
      interruptAfterTimeLimit: 50_000,
    });
  });
});

/** A lifetime is added where the handler states none; nothing else may differ. */
function expectedOf(expected: Got, got: Got): Got {
  const own = expected.headers["cache-control"];
  const added = own === undefined ? "max-age=60" : `${own}, max-age=60`;
  if (got.headers["cache-control"] !== added) return expected;
  return { ...expected, headers: { ...expected.headers, "cache-control": added } };
}
