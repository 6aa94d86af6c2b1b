import { once } from "node:events";
import Koa from "koa";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/koa";
import { checkPage, works } from "./check.mjs";

let runs = 0;
const app = new Koa();
app.use(httpCache({ cache: new XCache({ kvUrl: "memory://" }), ttl: 60 }));
app.use((context) => {
  context.body = `page ${++runs}`;
});
const server = app.listen(0, "127.0.0.1");
await once(server, "listening");
await checkPage(server.address().port, () => runs);
works("koa");
