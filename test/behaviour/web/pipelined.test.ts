// Requests that are written at once on one connection, to files, cookies and a session outside of the cache: each is answered
// as without the cache, in order, and none hangs.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import express from "express";
import express4 from "express-4";
import session from "express-session";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { httpCache } from "../../../src/web/express.ts";
import { soon } from "../../support/pace.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { listen } from "./subject.ts";

const PROGRAMS = Number(process.env.XCACHE_TEST_PROGRAMS ?? 2_000) / 50;
const SEED = Number(process.env.XCACHE_TEST_SEED ?? 1);
const HUNG_MS = 3_000;
const PATHS = [
  "/file/1",
  "/file/2",
  "/file-with-cookie/1",
  "/file-with-cookie/2",
  "/text/1",
  "/text-with-cookie/1",
  "/none",
];

const request = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "HEAD", "POST"),
  path: fc.constantFrom(...PATHS),
  cookie: fc.constantFrom("", "", "", "cookie: a=b\r\n"),
});
const program = fc.record({
  requests: fc.array(request, { minLength: 2, maxLength: 5 }),
  session: fc.constantFrom(undefined, {}, { resave: true }, { rolling: true }, { saveUninitialized: false }),
});
type Program = typeof program extends fc.Arbitrary<infer P> ? P : never;

function serve(
  create: typeof express,
  options: Program["session"],
  isCached: boolean,
  file: string,
): Promise<number> {
  const app = create();
  app.set("env", "production");
  if (options !== undefined)
    app.use(session({ secret: "a secret of the test", resave: false, saveUninitialized: true, ...options }));
  if (isCached) app.use(httpCache({ cache: memoryCache().cache, ttl: 300 }));
  app.get("/file/:number", (_request, response) => response.sendFile(file));
  app.get("/file-with-cookie/:number", (_request, response) => response.cookie("a", "b").sendFile(file));
  app.get("/text/:number", (_request, response) => void response.send("text"));
  app.get("/text-with-cookie/:number", (_request, response) => void response.cookie("a", "b").send("text"));
  app.post("/text/:number", (_request, response) => void response.status(201).send("posted"));
  return listen(app);
}

/** Status and cookies of every response and all bodies, or that it hangs. */
function answers(port: number, { requests }: Program): Promise<unknown> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1");
    const timer = setTimeout(() => {
      resolve(`hung after ${text.length} bytes`);
      socket.destroy();
    }, soon(HUNG_MS));
    socket.setEncoding("latin1").on("data", (part: string) => {
      text += part;
    });
    socket.on("close", () => {
      clearTimeout(timer);
      const lines = text.match(/HTTP\/1\.1 \d+|\r\nset-cookie: [^=]+|text(?=HTTP|$)|posted|-{1000}/gi);
      resolve(lines?.map((line) => line.slice(0, 40).trim().toLowerCase()));
    });
    const sent = requests.map(({ method, path, cookie }, at) => {
      const last = at === requests.length - 1 ? "connection: close\r\n" : "";
      const length = method === "POST" ? "content-length: 0\r\n" : "";
      return `${method} ${path} HTTP/1.1\r\nhost: site.test\r\n${cookie}${length}${last}\r\n`;
    });
    socket.write(sent.join(""));
  });
}

describe.each([
  ["Express 5", express],
  ["Express 4", express4],
] as const)("on %s", (_, create) => {
  test("requests sent ahead are answered as without the cache", async () => {
    const folder = mkdtempSync(join(tmpdir(), "xcache-pipelined-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "file.txt");
    writeFileSync(file, "-".repeat(50_000));
    const check = async (own: Program): Promise<void> => {
      const [bare, cached] = [
        await serve(create, own.session, false, file),
        await serve(create, own.session, true, file),
      ];
      const expected = await answers(bare, own);
      // The first time fills the cache, the second finds it filled.
      for (let time = 0; time < 2; time++) expect(await answers(cached, own)).toEqual(expected);
    };
    await fc.assert(fc.asyncProperty(program, check), { seed: SEED, numRuns: PROGRAMS, endOnFailure: true });
  });
});
