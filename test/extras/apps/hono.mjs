import { Hono } from "hono";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/hono";
import { check, works } from "./check.mjs";

let runs = 0;
const app = new Hono();
app.use(httpCache({ cache: new XCache({ kvUrl: "memory://" }), ttl: 60 }));
app.get("/page", (context) => context.text(`page ${++runs}`));
const bodies = [];
for (let at = 0; at < 2; at++) bodies.push(await (await app.request("/page")).text());
check(bodies, ["page 1", "page 1"], "the response of two requests");
works("hono");
