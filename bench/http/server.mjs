// One server of the comparison: node server.mjs <framework> <bare|cached> <bytes>. Prints its port.
import { createServer } from "node:http";

const [framework, variant, size] = process.argv.slice(2);
const body = "x".repeat(Number(size));
const isCached = variant === "cached";

/** @param {string} name */
const adapterOf = (name) => import(`../../dist/web/${name}.js`);

async function cacheOptions() {
  const { MemoryBackend, XCache } = await import("../../dist/index.js");
  return { cache: new XCache({ backend: new MemoryBackend() }), ttl: 3_600 };
}

/** @type {Record<string, () => Promise<import("node:http").RequestListener>>} */
const LISTENERS = {
  async node() {
    /** @type {import("node:http").RequestListener} */
    const listener = (_request, response) => {
      response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": body.length });
      response.end(body);
    };
    if (!isCached) return listener;
    const { httpCache } = await adapterOf("node");
    return httpCache(await cacheOptions())(listener);
  },
  async express() {
    const { default: express } = await import("express");
    const app = express();
    if (isCached) app.use((await adapterOf("express")).httpCache(await cacheOptions()));
    app.get("/", (_request, response) => void response.type("text").send(body));
    return app;
  },
  async fastify() {
    const { default: Fastify } = await import("fastify");
    const app = Fastify();
    if (isCached) app.register((await adapterOf("fastify")).httpCache(await cacheOptions()));
    app.get("/", (_request, reply) => void reply.type("text/plain").send(body));
    await app.ready();
    return app.routing;
  },
  async koa() {
    const { default: Koa } = await import("koa");
    const app = new Koa();
    if (isCached) app.use((await adapterOf("koa")).httpCache(await cacheOptions()));
    app.use((context) => {
      context.type = "text";
      context.body = body;
    });
    return app.callback();
  },
  async hono() {
    const { getRequestListener } = await import("@hono/node-server");
    const { Hono } = await import("hono");
    const app = new Hono();
    if (isCached) app.use((await adapterOf("hono")).httpCache(await cacheOptions()));
    app.get("/", (context) => context.text(body));
    return /** @type {import("node:http").RequestListener} */ (getRequestListener(app.fetch));
  },
};

const makeListener = LISTENERS[framework ?? ""];
if (makeListener === undefined)
  throw new Error(`expected one of ${Object.keys(LISTENERS).join(", ")}, got ${framework}`);
const server = createServer(await makeListener());
server.listen(0, "127.0.0.1", () => {
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  console.log(port);
});
process.on("disconnect", () => process.exit());
