// Applications behind a proxy that they trust, or not: host and scheme in X-Forwarded-* differ per user, and each gets what the
// application answers without the cache.
import type { RequestListener } from "node:http";
import express from "express";
import express4 from "express-4";
import Fastify from "fastify";
import Fastify4 from "fastify-4";
import Koa from "koa";
import Koa2 from "koa-2";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache as expressCache } from "../../../src/web/express.ts";
import { httpCache as fastifyCache } from "../../../src/web/fastify.ts";
import { httpCache as koaCache } from "../../../src/web/koa.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { ask, listen } from "./subject.ts";

type Serve = (isTrusted: boolean, isCached: boolean) => RequestListener | Promise<RequestListener>;

const options = () => ({ cache: memoryCache().cache, ttl: 300 });

const onExpress =
  (create: typeof express): Serve =>
  (isTrusted, isCached) => {
    const app = create();
    app.set("trust proxy", isTrusted);
    if (isCached) app.use(expressCache(options()));
    app.get("/", ({ protocol, hostname }, response) => void response.send(`${protocol}://${hostname}`));
    return app;
  };

const onKoa =
  (Application: typeof Koa): Serve =>
  (isTrusted, isCached) => {
    const app = new Application();
    app.proxy = isTrusted;
    if (isCached) app.use(koaCache(options()));
    app.use((context) => {
      context.body = `${context.protocol}://${context.hostname}`;
    });
    return app.callback();
  };

const onFastify =
  (create: typeof Fastify): Serve =>
  async (isTrusted, isCached) => {
    const app = create({ trustProxy: isTrusted });
    if (isCached) app.register(fastifyCache(options()));
    app.get("/", async ({ protocol, hostname }) => `${protocol}://${hostname}`);
    await app.ready();
    onTestFinished(() => app.close());
    return app.routing;
  };

const FRAMEWORKS: Record<string, Serve> = {
  "Express 5": onExpress(express),
  "Express 4": onExpress(express4),
  "Koa 3": onKoa(Koa),
  "Koa 2": onKoa(Koa2),
  "Fastify 5": onFastify(Fastify),
  "Fastify 4": onFastify(Fastify4),
};

const HOSTS = [undefined, "ann.test", "bob.test", "ann.test, proxy.test"];
const SCHEMES = [undefined, "https", "http"];

/** Every combination twice, in an order in which each follows another one. */
const VISITS = [0, 1].flatMap(() =>
  HOSTS.flatMap((host) =>
    SCHEMES.map((scheme) => ({
      ...(host === undefined ? {} : { "x-forwarded-host": host }),
      ...(scheme === undefined ? {} : { "x-forwarded-proto": scheme }),
    })),
  ),
);

describe.each(Object.entries(FRAMEWORKS))("on %s", (_, serve) => {
  test.each([true, false])(
    "each host and scheme has its own page if the proxy is trusted: %s",
    async (isTrusted) => {
      const [bare, cached] = [
        await listen(await serve(isTrusted, false)),
        await listen(await serve(isTrusted, true)),
      ];
      const bodies = new Set<string>();
      for (const [at, headers] of VISITS.entries()) {
        const expected = await ask(bare, "/", { headers });
        const got = await ask(cached, "/", { headers });
        expect([got.status, got.body], JSON.stringify(headers)).toEqual([expected.status, expected.body]);
        expect(got.headers["cache-status"]?.includes("hit")).toBe(at >= VISITS.length / 2);
        bodies.add(got.body);
      }
      expect(bodies.size > 1).toBe(isTrusted);
    },
  );
});
