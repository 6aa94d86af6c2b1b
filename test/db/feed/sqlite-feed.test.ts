// Invalidation when a file of SQLite has changed.
import { Kysely } from "kysely";
import { expect, test } from "vitest";
import { startSqliteFeed } from "../../../src/db/feed/sqlite-feed.ts";
import { sqliteFeed } from "../../../src/db/feed.ts";
import { ManualClock } from "../../../src/testing/index.ts";
import { cachedDependency } from "../database.ts";
import { kyselyRows, type Schema, sqliteDialect } from "../kysely-session.ts";
import { sqliteFile } from "../sqlite.ts";

const file = sqliteFile();

function start() {
  const own = file.connect();
  const { cache } = file.cache;
  const clock = new ManualClock();
  const feed = startSqliteFeed({ database: own, cache, tables: "users", interval: 1 }, clock);
  file.atEnd(() => feed.close().then(() => own.close()));
  const session = cachedDependency(() => new Kysely<Schema>({ dialect: sqliteDialect(file) }), {
    cache: file.cache,
    tableName: "users",
    feed,
  })();
  return { feed, clock, rows: kyselyRows(session) };
}

test("a read after a commit of any other connection sees it, at once", async () => {
  const { feed, rows } = start();
  await feed.ready();
  const first = await rows.read();
  expect(await rows.read()).toEqual(first);
  expect(await file.cache.keys()).toHaveLength(1);
  for (const name of ["Bob", "Eve", "Mallory"]) {
    await file.changeBehind(name);
    expect(JSON.stringify(await rows.read())).toContain(name);
    await feed.ready();
    expect(JSON.stringify(await rows.read())).toContain(name);
  }
  expect(feed.status()).toMatchObject({ role: "leader", alive: true, gaps: 1, invalidations: 3 });
});

test("without reads of a session it looks at the file by itself", async () => {
  const { feed, clock } = start();
  await feed.ready();
  const { cache } = file.cache;
  await cache.set("users", 1, { tags: ["table:users"] });
  await clock.advance(1_000);
  expect(await cache.get("users")).toBe(1);
  await file.changeBehind("Bob");
  await clock.advance(1_000);
  expect(await cache.get("users")).toBeUndefined();
});

test("a file that cannot be read, and a closed feed, are not alive", async () => {
  const { feed } = start();
  await feed.ready();
  await feed.close();
  expect(feed.isAlive()).toBe(false);
  await expect(feed.ready()).rejects.toMatchObject({ code: "DISCONNECTED" });
  const database = {
    prepare: (): never => {
      throw new Error("unable to open database file");
    },
  };
  const broken = sqliteFeed({ database, cache: file.cache.cache, tables: "users" });
  await expect(broken.ready()).rejects.toThrow("unable to open");
  expect(broken.health()).toEqual({
    name: "feed",
    ok: false,
    detail: "has never been alive: unable to open database file",
  });
  await broken.close();
});

test("options are checked", () => {
  const { cache } = file.cache;
  expect(() => sqliteFeed({ database: {} as never, cache, tables: "users" })).toThrow(
    "database must be a connection",
  );
  expect(() => sqliteFeed({ database: file.raw, cache, tables: "users", interval: -1 })).toThrow("interval");
  expect(() => sqliteFeed({ database: file.raw, cache, tables: "users", silentFor: 1 } as never)).toThrow(
    "silentFor",
  );
});
