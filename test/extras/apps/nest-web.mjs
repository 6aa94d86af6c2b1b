// The HTTP cache in front of a Nest application, on the platform that is installed: the first and the second visit of a page
// are as without the cache.
import "reflect-metadata";
import { Readable } from "node:stream";
import {
  Catch,
  Controller,
  ForbiddenException,
  Get,
  Header,
  HttpException,
  Module,
  StreamableFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { map } from "rxjs";
import { XCache } from "xcache";
import { check, works } from "./check.mjs";

const fastify = await import("@nestjs/platform-fastify").catch(() => undefined);
const platform = fastify === undefined ? "express" : "fastify";
const { httpCache } = await import(`xcache/web/${platform}`);

const wrapping = { intercept: (_context, next) => next.handle().pipe(map((data) => ({ data }))) };
const guard = {
  canActivate: (context) => {
    if (context.switchToHttp().getRequest().headers["x-member"] === "yes") return true;
    throw new ForbiddenException();
  },
};
class Teapot extends HttpException {
  constructor() {
    super("tea", 418);
  }
}
class Filter {
  catch(error, host) {
    host
      .switchToHttp()
      .getResponse()
      .status(error.getStatus())
      .header("x-filtered", "yes")
      .send({ tea: true });
  }
}
Catch(Teapot)(Filter);

/** By path: how a page is made, its decorators, and whether it is stored. */
const PAGES = {
  json: { make: () => ({ a: 1 }), decorators: [Header("x-decorated", "yes")], isStored: true },
  wrapped: { make: () => ({ a: 1 }), decorators: [UseInterceptors(wrapping)], isStored: true },
  file: {
    make: () => new StreamableFile(Readable.from([Buffer.from("one "), Buffer.from("two")])),
    decorators: [Header("content-type", "text/plain")],
    isStored: true,
  },
  members: { make: () => "for members", decorators: [UseGuards(guard)], isStored: false },
  teapot: {
    make: () => {
      throw new Teapot();
    },
    decorators: [UseFilters(new Filter())],
    isStored: false,
  },
};

async function start(isCached) {
  class Pages {}
  for (const [path, { make, decorators }] of Object.entries(PAGES)) {
    Object.defineProperty(Pages.prototype, path, { value: () => make(), configurable: true, writable: true });
    const descriptor = Object.getOwnPropertyDescriptor(Pages.prototype, path);
    for (const decorate of [...decorators, Get(path)]) decorate(Pages.prototype, path, descriptor);
  }
  Controller()(Pages);
  class App {}
  Module({ controllers: [Pages] })(App);
  const settings = { logger: false, abortOnError: false };
  const options = { cache: new XCache({ kvUrl: "memory://" }), ttl: 60, varyCookie: false };
  const given = fastify === undefined ? [settings] : [new fastify.FastifyAdapter(), settings];
  const app = await NestFactory.create(App, ...given);
  if (isCached && fastify === undefined) app.use(httpCache(options));
  else if (isCached) await app.register(httpCache(options));
  await app.listen(0, "127.0.0.1");
  const { port } = app.getHttpServer().address();
  return async (path) => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`);
    const names = ["content-type", "x-decorated", "x-filtered"];
    const seen = [response.status, names.map((name) => response.headers.get(name)), await response.text()];
    return { seen, isHit: response.headers.get("cache-status")?.includes("hit") ?? false };
  };
}

const [bare, cached] = [await start(false), await start(true)];
for (const [path, { isStored }] of Object.entries(PAGES)) {
  const { seen: expected } = await bare(path);
  check((await cached(path)).seen, expected, `the first visit of ${path}`);
  const { seen, isHit } = await cached(path);
  check([seen, isHit], [expected, isStored], `the second visit of ${path}`);
}
works("@nestjs/common", `@nestjs/platform-${platform}`);
