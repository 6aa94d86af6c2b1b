// Every TypeScript and JavaScript block of the docs runs to its end and prints what it says.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyStale } from "../../scripts/build/build.mjs";
import { type PostgresAddress, type PostgresServer, startPostgres } from "../support/postgres.ts";
import { problemsOf } from "./page-run.ts";
import { pages, readPage } from "./pages.ts";
import { snippetsOf } from "./snippet.ts";

let postgres: PostgresServer;
let database: PostgresAddress;

beforeAll(async () => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  postgres = await startPostgres({ wal_level: "logical" });
  database = postgres.at(await postgres.createDatabase());
  const client = new pg.Client(database);
  await client.connect();
  await client.query("CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL)");
  await client.query("INSERT INTO users VALUES (1, 'Grace')");
  await client.query("CREATE PUBLICATION xcache FOR TABLE users");
  await client.end();
});
afterAll(() => postgres.stop());

const pagesWithCode = pages.filter((page) => snippetsOf(page, readPage(page)).length > 0);

describe.concurrent("code blocks", () => {
  test.each(pagesWithCode)("of %s run to their end", async (page) => {
    expect(await problemsOf(page, readPage(page), database)).toEqual([]);
  });

  const page = (...blocks: readonly string[]): string =>
    blocks.map((code) => `\`\`\`${code}\n\`\`\``).join("\n");

  test("that fail are told by page and line", async () => {
    const markdown = page("ts\nconst fine = 1;", 'ts\nthrow new Error("as in the docs");');
    expect(await problemsOf("docs/fails.md", markdown)).toEqual([
      expect.stringMatching(/^docs\/fails\.md:5 [\s\S]*Error: as in the docs/),
    ]);
  });

  test("that leave a failing promise behind are told as well", async () => {
    const markdown = page('ts\nvoid Promise.reject(new Error("left behind"));');
    expect(await problemsOf("docs/leaves.md", markdown)).toEqual([
      expect.stringMatching(/^docs\/leaves\.md:2 [\s\S]*left behind/),
    ]);
  });

  test("that print something else than they say are told", async () => {
    const markdown = page(
      "ts\nconst n = 1;\nconsole.log(n); // prints 1",
      "ts continued\nconsole.log(n + 1); // prints 3",
    );
    expect(await problemsOf("docs/prints.md", markdown)).toEqual(['docs/prints.md:2 prints ["1","2"]']);
  });

  test("reach the servers of the test under the usual ports, and their own under the port they chose", async () => {
    const markdown = page(
      [
        "ts",
        'import { createServer } from "node:http";',
        'import { XCache } from "xcache";',
        "const cache = new XCache(); // redis://localhost:6379/0",
        'await cache.set("greeting", "hello");',
        'createServer(async (_, response) => response.end(await cache.get("greeting"))).listen(3000);',
        'console.log(await (await fetch("http://localhost:3000")).text()); // prints hello',
      ].join("\n"),
    );
    expect(await problemsOf("docs/servers.md", markdown)).toEqual([]);
  });
});
