// The web framework examples serve cacheable responses from the cache, and show a change to the next visitor.
import { beforeAll, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { startPostgres } from "../support/postgres.ts";
import { storyOf, visitsOf } from "./example.ts";

beforeAll(() => expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined());

test("express: a change invalidates the pages that contain the product, and nothing else", async () => {
  const [lamp, cheap, dear] = ['{"name":"lamp","price":40}', '"price":40', '"price":45'];
  const visits = visitsOf(await storyOf("express"));
  expect(visits.map(([request, source]) => `${request} ${source}`)).toEqual([
    "GET /products/1 made",
    "GET /products/1 hit",
    "GET /products made",
    "GET /products/2 made",
    "PUT /products/1?price=45 200",
    "GET /products/1 made",
    "GET /products made",
    "GET /products/2 hit",
  ]);
  expect(visits.slice(0, 2).map(([, , answer]) => answer)).toEqual([lamp, lamp]);
  expect(visits[2]![2]).toContain(cheap);
  for (const at of [4, 5, 6]) expect(visits[at]![2]).toContain(dear);
});

test("hono: concurrent requests cause one call of the slow service", async () => {
  const story = await storyOf("hono");
  expect(story).toContain("20 visitors at once, calls of the slow service: 1");
  expect(visitsOf(story).map(([request, source]) => `${request} ${source}`)).toEqual([
    "GET /forecasts/oslo hit",
    "POST /new-data 200",
    "GET /forecasts/oslo made",
    "GET /forecasts/oslo hit",
  ]);
});

test("dashboard: unauthenticated users see nothing, secrets are hidden, and changes are audited", async () => {
  expect((await storyOf("dashboard")).slice(1)).toEqual([
    "a stranger: 401",
    "4 entries, 1 function",
    'product("1"): object, tags products, product:1, email [redacted]',
    "audit: admin did invalidate products",
    "invalidated: products",
    "left: invalidated",
  ]);
});

test("koa: no user sees the page of another, and a change affects one user only", async () => {
  const [tea, milk, cake] = [
    '{"user":"ada","basket":["tea"]}',
    '{"user":"grace","basket":["milk"]}',
    '{"user":"ada","basket":["tea","cake"]}',
  ];
  expect(visitsOf(await storyOf("koa"))).toEqual([
    ["GET /basket", "made", tea],
    ["GET /basket", "hit", tea],
    ["GET /basket", "made", milk],
    ["GET /basket", "hit", milk],
    ["POST /items?add=cake", "200", cake],
    ["GET /basket", "made", cake],
    ["GET /basket", "hit", milk],
    ["GET /basket", "401", "Unauthorized"],
  ]);
});

test("fastify: a commit invalidates the responses built from its rows", async () => {
  await using server = await startPostgres();
  const { host, port, user, database } = server.at("postgres");
  const visits = visitsOf(
    await storyOf("fastify", {
      PGHOST: host,
      PGPORT: String(port),
      PGUSER: user,
      PGDATABASE: database,
    }),
  );
  const [ada, grace] = ['{"id":1,"name":"Ada"}', '{"id":1,"name":"Grace"}'];
  const alan = '{"id":2,"name":"Alan"}';
  expect(visits).toEqual([
    ["GET /users/1", "made", ada],
    ["GET /users/1", "hit", ada],
    ["GET /users", "made", `[${ada},${alan}]`],
    ["PUT /users/1?name=Grace", "200", '{"changed":1}'],
    ["GET /users/1", "made", grace],
    ["GET /users", "made", `[${grace},${alan}]`],
    ["GET /users", "hit", `[${grace},${alan}]`],
  ]);
});
