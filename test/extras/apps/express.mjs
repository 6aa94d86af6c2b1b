import express from "express";
import { XCache } from "xcache";
import { httpCache } from "xcache/web/express";
import { checkPage, works } from "./check.mjs";

let runs = 0;
const app = express();
app.use(httpCache({ cache: new XCache({ kvUrl: "memory://" }), ttl: 60 }));
app.get("/page", (_request, response) => response.send(`page ${++runs}`));
const server = app.listen(0, "127.0.0.1", async () => {
  await checkPage(server.address().port, () => runs);
  works("express");
});
