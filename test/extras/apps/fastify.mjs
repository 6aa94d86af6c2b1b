import Fastify from "fastify";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/fastify";
import { checkPage, works } from "./check.mjs";

let runs = 0;
const app = Fastify();
app.register(httpCache({ cache: new XCache({ kvUrl: "memory://" }), ttl: 60 }));
app.get("/page", async () => `page ${++runs}`);
await app.listen({ port: 0, host: "127.0.0.1" });
await checkPage(app.server.address().port, () => runs);
works("fastify");
