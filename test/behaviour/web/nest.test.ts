// A Nest application on Express and on Fastify, with what Nest puts between a request and its handler: behind the cache it
// answers on every visit as it does without.
import "reflect-metadata";
import { Readable } from "node:stream";
import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  Header,
  HttpCode,
  HttpException,
  type INestApplication,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  ParseIntPipe,
  Post,
  Query,
  Redirect,
  Res,
  StreamableFile,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { map, type Observable, of } from "rxjs";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, type Got } from "./subject.ts";

/** What the handlers have counted. */
interface Counter {
  calls: number;
}

class Wrapping implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const response = context.switchToHttp().getResponse<{ header(name: string, value: string): unknown }>();
    response.header("x-intercepted", "before");
    return next.handle().pipe(
      map((data: unknown) => {
        response.header("x-intercepted", "after");
        return { data };
      }),
    );
  }
}

class OnlyMembers implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return headers["x-member"] === "yes";
  }
}

class Teapot extends HttpException {
  constructor() {
    super("short and stout", 418);
  }
}

/** What both platforms have of a response. */
interface Reply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): unknown;
}

class TeapotFilter implements ExceptionFilter<Teapot> {
  catch(error: Teapot, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Reply>();
    response.status(error.getStatus()).header("x-filtered", "yes").send({ tea: error.message });
  }
}
Catch(Teapot)(TeapotFilter);

/** Applies decorators as a compiler with `experimentalDecorators` does. */
function decorate(
  type: { readonly prototype: object },
  method: string,
  ...decorators: MethodDecorator[]
): void {
  const { prototype } = type;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, method)!;
  for (const one of decorators.reverse()) one(prototype, method, descriptor);
  Object.defineProperty(prototype, method, descriptor);
}

function rootModule(counter: Counter): new () => object {
  class Pages {
    json(): object {
      return { call: ++counter.calls };
    }
    text(): string {
      return `call ${++counter.calls}`;
    }
    one(id: number, query: string | undefined): object {
      return { id, query, call: ++counter.calls };
    }
    wrapped(): Observable<object> {
      return of({ call: ++counter.calls });
    }
    file(): StreamableFile {
      counter.calls++;
      return new StreamableFile(Readable.from([Buffer.from("a file "), Buffer.from("in two parts")]), {
        type: "text/plain",
        disposition: 'attachment; filename="a.txt"',
      });
    }
    bytes(): StreamableFile {
      counter.calls++;
      return new StreamableFile(Buffer.from([0, 255, 128]), { length: 3 });
    }
    passed(response: Reply): object {
      response.header("x-passed", "yes");
      return { call: ++counter.calls };
    }
    sent(response: Reply): void {
      response
        .status(200)
        .header("content-type", "text/plain; charset=utf-8")
        .send(`call ${++counter.calls}`);
    }
    members(): string {
      return `call ${++counter.calls}`;
    }
    missing(): never {
      throw new NotFoundException("nothing here");
    }
    teapot(): never {
      throw new Teapot();
    }
    broken(): never {
      throw new Error("failed on purpose");
    }
    moved(): void {}
    privately(): string {
      return `call ${++counter.calls}`;
    }
    add(): object {
      return { call: ++counter.calls };
    }
  }
  decorate(Pages, "json", Get("json"), Header("x-decorated", "yes"));
  decorate(Pages, "text", Get("text"), Header("content-type", "text/plain; charset=utf-8"));
  decorate(Pages, "one", Get("items/:id"));
  Param("id", ParseIntPipe)(Pages.prototype, "one", 0);
  Query("q")(Pages.prototype, "one", 1);
  decorate(Pages, "wrapped", Get("wrapped"), UseInterceptors(new Wrapping()));
  decorate(Pages, "file", Get("file"), Header("etag", '"of the file"'));
  decorate(Pages, "bytes", Get("bytes"));
  decorate(Pages, "passed", Get("passed"));
  Res({ passthrough: true })(Pages.prototype, "passed", 0);
  decorate(Pages, "sent", Get("sent"));
  Res()(Pages.prototype, "sent", 0);
  decorate(Pages, "members", Get("members"), UseGuards(new OnlyMembers()), Header("vary", "X-Member"));
  decorate(Pages, "missing", Get("missing"));
  decorate(Pages, "teapot", Get("teapot"), UseFilters(new TeapotFilter()));
  decorate(Pages, "broken", Get("broken"));
  decorate(Pages, "moved", Get("moved"), Redirect("/json", 302));
  decorate(Pages, "privately", Get("private"), Header("cache-control", "private"));
  decorate(Pages, "add", Post("json"), HttpCode(202));
  Controller()(Pages);
  class Root {}
  Module({ controllers: [Pages] })(Root);
  return Root;
}

type Start = (counter: Counter, isCached: boolean) => Promise<INestApplication>;

const SETTINGS = { logger: false, abortOnError: false } as const;
const options = () => ({ cache: memoryCache().cache, ttl: 300, varyCookie: false });

const PLATFORMS: Record<string, Start> = {
  Express: async (counter, isCached) => {
    const app = await NestFactory.create(rootModule(counter), SETTINGS);
    if (isCached) app.use(expressCache(options()));
    return app;
  },
  Fastify: async (counter, isCached) => {
    const adapter = new FastifyAdapter();
    const app = await NestFactory.create<NestFastifyApplication>(rootModule(counter), adapter, SETTINGS);
    if (isCached) await app.register(fastifyCache(options()) as never);
    return app;
  },
};

interface Page {
  readonly path: string;
  readonly headers?: Record<string, string>;
  /** Whether the second visit is answered from the cache. */
  readonly isStored: boolean;
}

const PAGES: readonly Page[] = [
  { path: "/json", isStored: true },
  { path: "/text", isStored: true },
  { path: "/items/7?q=a", isStored: true },
  { path: "/items/none", isStored: false },
  { path: "/wrapped", isStored: true },
  { path: "/file", isStored: true },
  { path: "/bytes", isStored: true },
  { path: "/passed", isStored: true },
  { path: "/sent", isStored: true },
  { path: "/members", headers: { "x-member": "yes" }, isStored: true },
  { path: "/members", isStored: false },
  { path: "/missing", isStored: false },
  { path: "/teapot", isStored: false },
  { path: "/broken", isStored: false },
  { path: "/moved", isStored: false },
  { path: "/private", isStored: false },
  { path: "/nowhere", isStored: false },
];

const NOT_COMPARED = new Set([
  ...["age", "cache-status", "connection", "content-length", "date", "keep-alive", "transfer-encoding"],
]);

/** The cache adds a lifetime and an ETag where there are none. */
function seen({ status, bytes, headers }: Got, bare: Got): unknown {
  const fields = Object.entries(headers).filter(([name]) => {
    const isAdded = (name === "etag" || name === "cache-control") && bare.headers[name] === undefined;
    return !NOT_COMPARED.has(name) && !isAdded;
  });
  return { status, headers: fields.toSorted(), body: bytes.toString("latin1") };
}

const isHit = ({ headers }: Got): boolean => String(headers["cache-status"]).startsWith("xcache; hit");

describe.each(Object.entries(PLATFORMS))("Nest on %s", (_, start) => {
  async function open(isCached: boolean) {
    const counter = { calls: 0 };
    const app = await start(counter, isCached);
    onTestFinished(() => app.close());
    await app.listen(0, "127.0.0.1");
    const { port } = new URL(await app.getUrl());
    return { counter, ask: (path: string, asked = {}) => ask(Number(port), path, asked) };
  }

  test.each(PAGES)(
    "$path with $headers is the same on every visit",
    async ({ path, headers = {}, isStored }) => {
      const [bare, cached] = [await open(false), await open(true)];
      const expected = await bare.ask(path, { headers });
      const first = await cached.ask(path, { headers });
      expect(seen(first, expected), "first visit").toEqual(seen(expected, expected));
      const second = await cached.ask(path, { headers });
      expect(isHit(second)).toBe(isStored);
      const again = isStored ? expected : await bare.ask(path, { headers });
      expect(seen(second, again), "second visit").toEqual(seen(again, again));
      // A refusal of one visitor is not for another, nor is a page.
      expect(cached.counter.calls).toBe(isStored ? Math.min(1, bare.counter.calls) : bare.counter.calls);
    },
  );

  test("a guard decides for each visitor, and a POST invalidates its page", async () => {
    const { ask } = await open(true);
    const statusOf = async (headers: object) => (await ask("/members", { headers })).status;
    const [member, other] = [{ "x-member": "yes" }, {}];
    expect([await statusOf(member), await statusOf(other), await statusOf(member)]).toEqual([200, 403, 200]);
    const before = (await ask("/json")).body;
    expect((await ask("/json")).body).toBe(before);
    expect((await ask("/json", { method: "POST" })).status).toBe(202);
    expect((await ask("/json")).body).not.toBe(before);
  });

  test("a condition on a streamed file is answered by the request that fills the cache", async () => {
    const { ask, counter } = await open(true);
    const headers = { "if-none-match": '"of the file"' };
    for (let visit = 0; visit < 2; visit++) {
      const { status, body } = await ask("/file", { headers });
      expect([status, body]).toEqual([304, ""]);
    }
    expect((await ask("/file")).body).toBe("a file in two parts");
    expect(counter.calls).toBe(1);
  });
});
