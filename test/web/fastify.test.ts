// Fastify specifics: scopes, route configuration, hooks, a rewritten URL.
import fastifyCookie from "@fastify/cookie";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { httpCache } from "../../src/web/fastify.ts";
import { memoryCache } from "../behaviour/cache/memory-cache.ts";
import { ask } from "../behaviour/web/subject.ts";

async function serve(
  plan: (app: FastifyInstance) => void,
  options: FastifyServerOptions = {},
): Promise<number> {
  const app = Fastify(options);
  plan(app);
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  return (app.server.address() as { port: number }).port;
}

test("only routes of the scope in which it is registered are cached", async () => {
  let calls = 0;
  const port = await serve((app) => {
    app.register(async (scope) => {
      scope.register(httpCache({ cache: memoryCache().cache }));
      scope.get("/in", () => `${++calls}`);
    });
    app.get("/out", () => `${++calls}`);
  });
  for (const [path, body] of [
    ["/in", "1"],
    ["/in", "1"],
    ["/out", "2"],
    ["/out", "3"],
  ] as const) {
    expect((await ask(port, path)).body).toBe(body);
  }
});

test("each version of a route has its own response", async () => {
  const port = await serve((app) => {
    app.register(httpCache({ cache: memoryCache().cache }));
    app.after(() => {
      for (const version of ["1.0.0", "2.0.0"])
        app.get("/page", { constraints: { version } }, () => `version ${version}`);
    });
  });
  const visit = async (version: string) => {
    const { body, headers } = await ask(port, "/page", { headers: { "accept-version": version } });
    return [body, headers["cache-status"]?.includes("hit")];
  };
  for (const isHit of [false, true]) {
    expect(await visit("1.x")).toEqual(["version 1.0.0", isHit]);
    expect(await visit("2.x")).toEqual(["version 2.0.0", isHit]);
  }
});

test("a cookie that a hook in front of the cache sets for some requests is not lost", async () => {
  const { cache } = memoryCache();
  const port = await serve((app) => {
    app.register(fastifyCookie);
    app.register(async (scope) => {
      scope.addHook("onRequest", async (request, reply) => {
        if (request.headers.referer !== undefined) reply.setCookie("from", request.headers.referer);
      });
      scope.register(httpCache({ cache }));
      scope.get("/", () => "page");
    });
  });
  const got = [];
  for (const headers of [{ referer: "a" }, {}, {}, { referer: "b" }, {}]) {
    const { headers: fields } = await ask(port, "/", { headers });
    got.push([fields["set-cookie"]?.[0]?.slice(0, 6), fields["cache-status"]]);
  }
  expect(got).toEqual([
    ["from=a", "xcache; fwd=bypass; detail=set-cookie"],
    [undefined, "xcache; fwd=uri-miss; stored"],
    [undefined, "xcache; hit; ttl=60"],
    ["from=b", "xcache; fwd=bypass; detail=set-cookie"],
    [undefined, "xcache; hit; ttl=60"],
  ]);
});

test("a nested cache leaves a response whose head node refuses as it is without the cache", async () => {
  const bodies: unknown[] = [];
  for (const caches of [0, 1, 2]) {
    const { cache } = memoryCache();
    const port = await serve((app) => {
      for (let at = 0; at < caches; at++) app.register(httpCache({ cache }));
      // Without chunks there are no trailers: Fastify tries again without any field.
      app.get("/", async (_request, reply) => {
        reply.header("trailer", "x-late");
        throw new Error("failed");
      });
    });
    const { status, headers, body } = await ask(port, "/");
    bodies.push([status, headers.trailer, body]);
  }
  expect(bodies[1]).toEqual(bodies[0]);
  expect(bodies[2]).toEqual(bodies[0]);
});

test("a response with two framings, which clients refuse, is not stored", async () => {
  let calls = 0;
  const port = await serve((app) => {
    app.register(httpCache({ cache: memoryCache().cache }));
    app.get("/", (_request, reply) => {
      calls++;
      reply.header("transfer-encoding", "chunked").send("page");
    });
  });
  for (let time = 0; time < 2; time++) await expect(ask(port, "/")).rejects.toThrow();
  expect(calls).toBe(2);
});

test("a route's configuration can set its options", async () => {
  const { cache } = memoryCache();
  const port = await serve((app) => {
    app.register(
      httpCache({
        cache,
        ttl: ({ routeOptions }) => (routeOptions.config as { ttl?: number }).ttl ?? 60,
        tags: ({ params }) => [`product:${(params as { id: string }).id}`],
      }),
    );
    app.get("/:id", { config: { ttl: 7 } as object }, () => "page");
  });
  expect((await ask(port, "/1")).headers["cache-control"]).toBe("max-age=7");
  await cache.invalidateTags("product:2");
  expect((await ask(port, "/1")).headers["cache-status"]).toContain("hit");
  await cache.invalidateTags("product:1");
  expect((await ask(port, "/1")).headers["cache-status"]).toContain("fwd=uri-miss");
});

test("the key is the URL before it was rewritten, also when a stale response is refreshed", async () => {
  const { cache } = memoryCache();
  const port = await serve(
    (app) => {
      app.register(httpCache({ cache }));
      app.get("/page", (request) => `${request.originalUrl} ${request.url}`);
    },
    { rewriteUrl: () => "/page" },
  );
  for (const path of ["/a", "/b", "/a"]) expect((await ask(port, path)).body).toBe(`${path} /page`);
  expect(await cache.get("web:http 9:site.test/a")).toBeDefined();
});

test("hooks in front of the cache run for every request, payload hooks behind it when a response is generated", async () => {
  const seen: string[] = [];
  const port = await serve((app) => {
    app.addHook("onResponse", async (_request, { statusCode }) => void seen.push(`response ${statusCode}`));
    app.addHook("onSend", async (_request, _reply, payload) => {
      seen.push("send");
      return `${payload}!`;
    });
    app.register(httpCache({ cache: memoryCache().cache }));
    app.addHook("onSend", async (_request, _reply, payload) => {
      seen.push("inner");
      return `${payload}?`;
    });
    app.get("/", () => "page");
  });
  for (let time = 0; time < 3; time++) expect((await ask(port, "/")).body).toBe("page!?");
  const hit = ["send", "response 200"];
  expect(seen).toEqual(["send", "inner", "response 200", ...hit, ...hit]);
});

test("a hook in front of the cache that fails makes an error of a stored response as well", async () => {
  const port = await serve((app) => {
    app.addHook("onSend", async (request, reply) => {
      if (request.headers.referer !== undefined && reply.statusCode === 200) throw new Error("refused");
    });
    app.register(httpCache({ cache: memoryCache().cache }));
    app.get("/", () => "page");
  });
  for (const [headers, status] of [
    [{}, 200],
    [{ referer: "a" }, 500],
    [{}, 200],
  ] as const) {
    const got = await ask(port, "/", { headers });
    expect([got.status, got.body.includes(status === 200 ? "page" : "refused")]).toEqual([status, true]);
  }
});

test("a Response and a JSON object are stored as they were sent, a HEAD is answered from them", async () => {
  const port = await serve((app) => {
    app.register(httpCache({ cache: memoryCache().cache }));
    app.get(
      "/response",
      () => new Response("page", { headers: { "x-a": "1", "content-type": "text/x-test" } }),
    );
    app.get("/object", () => ({ a: "é" }));
  });
  for (const [path, body, type] of [
    ["/response", "page", "text/x-test"],
    ["/object", '{"a":"é"}', "application/json; charset=utf-8"],
  ] as const) {
    const [first, second] = [await ask(port, path), await ask(port, path)];
    expect([first.body, second.body, second.headers["content-type"]]).toEqual([body, body, type]);
    const head = await ask(port, path, { method: "HEAD" });
    expect(head.headers["cache-status"]).toContain("hit");
    expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(body)));
  }
});

test("inject is answered like a client's request", async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  app.register(httpCache({ cache: memoryCache().cache }));
  app.get("/", () => "page");
  const said = [];
  for (let time = 0; time < 2; time++) said.push((await app.inject("/")).headers["cache-status"]);
  expect(said).toEqual(["xcache; fwd=uri-miss; stored", "xcache; hit; ttl=60"]);
});

test("the types of Fastify fit its HTTP/2 server as well", () => {
  const { cache } = memoryCache();
  const app = Fastify({ http2: true });
  app.register(httpCache({ cache, keyBuilder: (request) => request.url }));
  expect(app.hasRoute({ method: "GET", url: "/" })).toBe(false);
});
