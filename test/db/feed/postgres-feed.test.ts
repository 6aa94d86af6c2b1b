// Invalidation from the stream of changes of PostgreSQL: every kind of write, by any program.
import { describe, expect, test } from "vitest";
import { rowsTag, rowTag } from "../../../src/db/feed.ts";
import { tableTag } from "../../../src/index.ts";
import { until } from "../../support/until.ts";
import { becomes, feedStage } from "./feed-stage.ts";

const stage = feedStage({ max_prepared_transactions: "5" });

describe("a commit of another program", () => {
  test("invalidates in every process of the cache, one of which leads", async () => {
    const first = await stage.member({ silentFor: 4 });
    const second = await stage.member({ silentFor: 4 });
    for (const app of [first, second]) expect(await app.name()).toBe("u1");
    for (const app of [first, second]) await until(() => app.isCached(), { what: "reads are cached" });
    await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
    await becomes(second, "Ada");
    await becomes(first, "Ada");
    expect([first.feed.status().role, second.feed.status().role]).toEqual(["leader", "follower"]);
    expect(first.feed.status()).toMatchObject({ alive: true, error: undefined, gaps: 1, elections: 1 });
    expect(first.feed.status().lag).toBeGreaterThanOrEqual(0);
    expect(first.feed.status().position).toMatch(/^[0-9A-F]+\/[0-9A-F]+$/);
    expect(first.feed.health()).toEqual({ name: "feed", ok: true, detail: "leader" });
  });

  test("is counted in the metrics", async () => {
    const counted = new Map<string, number>();
    const add = (metric: string, value = 1) => void counted.set(metric, (counted.get(metric) ?? 0) + value);
    const metrics = {
      increment: add,
      gauge: (metric: string, value: number) => void counted.set(metric, value),
      timing: add,
    };
    const app = await stage.member({ metrics, silentFor: 4 });
    await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
    await becomes(app, "Ada");
    await until(() => counted.get("cache.feed.alive") === 1, { what: "it is reported as alive" });
    expect(Object.fromEntries(counted)).toEqual({
      "cache.feed.alive": 1,
      "cache.feed.gaps.total": 1,
      "cache.feed.leader_changes.total": 1,
      "cache.feed.invalidations.total": 1,
      "cache.feed.lag": expect.any(Number),
    });
  });

  test("that rolls back invalidates nothing", async () => {
    const app = await stage.member();
    await stage.outside.query("BEGIN; UPDATE users SET name = 'x' WHERE id = 1; ROLLBACK");
    await stage.outside.query("UPDATE users SET name = 'y' WHERE id = 2");
    await until(() => app.feed.status().invalidations === 1, { what: "the second is seen" });
  });
});

describe("every kind of write arrives:", () => {
  const writes: readonly (readonly [string, readonly string[]])[] = [
    ["COPY", ["COPY users FROM PROGRAM 'printf ''1\\tAda\\n'''"]],
    ["TRUNCATE", ["TRUNCATE users", "INSERT INTO users VALUES (1, 'Ada')"]],
    ["a function that writes", ["SELECT rename(1, 'Ada')"]],
    ["a trigger of another table", ["INSERT INTO renames VALUES (1, 'Ada')"]],
    [
      "a two-phase commit",
      [
        "BEGIN",
        "UPDATE users SET name = 'Ada' WHERE id = 1",
        "PREPARE TRANSACTION 'p'",
        "COMMIT PREPARED 'p'",
      ],
    ],
    ["asynchronous commit", ["SET synchronous_commit = off", "UPDATE users SET name = 'Ada' WHERE id = 1"]],
    [
      "a savepoint",
      ["BEGIN", "SAVEPOINT s", "UPDATE users SET name = 'Ada' WHERE id = 1", "RELEASE s", "COMMIT"],
    ],
  ];
  test.each(writes)("%s", async (kind, statements) => {
    const { outside } = stage;
    await outside.query(`
      CREATE FUNCTION rename(int, text) RETURNS void LANGUAGE sql AS 'UPDATE users SET name = $2 WHERE id = $1';
      CREATE TABLE renames (id int PRIMARY KEY, name text);
      CREATE FUNCTION renamed() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN UPDATE users SET name = NEW.name WHERE id = NEW.id; RETURN NULL; END';
      CREATE TRIGGER renamed AFTER INSERT ON renames FOR EACH ROW EXECUTE FUNCTION renamed()`);
    if (kind === "COPY") await outside.query("DELETE FROM users WHERE id = 1");
    const app = await stage.member();
    await app.name();
    for (const statement of statements) await outside.query(statement);
    await becomes(app, "Ada");
  });

  test("a cascade", async () => {
    await stage.outside.query(`
      CREATE TABLE owners (id int PRIMARY KEY);
      INSERT INTO owners VALUES (1);
      ALTER TABLE users ADD owner int REFERENCES owners ON DELETE CASCADE;
      UPDATE users SET owner = 1 WHERE id = 1`);
    const app = await stage.member();
    await stage.outside.query("DELETE FROM owners");
    await becomes(app, undefined);
  });

  test("a row of a partition, for readers of the whole and of the part", async () => {
    await stage.outside.query(`
      CREATE TABLE events (id int PRIMARY KEY, name text) PARTITION BY RANGE (id);
      CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (100);
      INSERT INTO events VALUES (1, 'a');
      ALTER PUBLICATION xcache ADD TABLE events`);
    const app = await stage.member({ tables: ["users", "events"] });
    const read = async (table: string) =>
      (await app.db.query(`SELECT name FROM ${table} WHERE id = 1`)).rows[0].name;
    expect([await read("events"), await read("events_1")]).toEqual(["a", "a"]);
    await stage.outside.query("UPDATE events SET name = 'b' WHERE id = 1");
    for (const table of ["events", "events_1"]) {
      await until(async () => (await read(table)) === "b", { what: `${table} is read anew` });
    }
  });

  test("a partition's change that is published as the whole table's", async () => {
    await stage.outside.query(`
      CREATE TABLE events (id int PRIMARY KEY, name text) PARTITION BY RANGE (id);
      CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (0) TO (100);
      INSERT INTO events VALUES (1, 'a');
      CREATE PUBLICATION whole FOR TABLE events WITH (publish_via_partition_root)`);
    const app = stage.start({ tables: ["events", "events_1"], publication: "whole" });
    await app.feed.ready();
    const read = async () => (await app.db.query("SELECT name FROM events_1 WHERE id = 1")).rows[0].name;
    expect(await read()).toBe("a");
    await stage.outside.query("UPDATE events_1 SET name = 'b' WHERE id = 1");
    await until(async () => (await read()) === "b", { what: "the partition is read anew" });
  });
});

describe("rows", () => {
  const rows = true;

  test("a change drops reads of its row by primary key, and no others", async () => {
    const app = await stage.member({ rows });
    for (const id of [1, 2]) await app.name(id);
    await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
    await becomes(app, "Ada", 1);
    expect(await app.isCached(2)).toBe(true);
    const tags = [];
    for await (const key of app.cache.keys("sql:*")) tags.push(await app.cache.tags(key));
    expect(tags).toContainEqual([rowTag("users", 2), rowsTag("users"), rowsTag("*")]);
  });

  test("a key that changes drops the row under its old and its new name", async () => {
    const app = await stage.member({ rows });
    expect(await app.name(3)).toBe("u3");
    await stage.outside.query("UPDATE users SET id = 4 WHERE id = 3");
    await becomes(app, undefined, 3);
    expect(await app.name(4)).toBe("u3");
  });

  test("an empty result is not stored", async () => {
    const app = await stage.member({ rows });
    expect(await app.name(9)).toBeUndefined();
    expect(await app.isCached(9)).toBe(false);
    await stage.outside.query("INSERT INTO users VALUES (9, 'u9')");
    expect(await app.name(9)).toBe("u9");
  });

  test("a truncation and a commit of a session drop all rows", async () => {
    const app = await stage.member({ rows });
    await app.name(2);
    await app.db.query("UPDATE users SET name = upper(name)");
    expect(await app.name(2)).toBe("U2");
    await stage.outside.query("TRUNCATE users");
    await becomes(app, undefined, 2);
  });

  test("a transaction of very many rows drops all rows of its tables", async () => {
    const app = await stage.member({ rows });
    const invalidated: (readonly string[])[] = [];
    app.cache.on("invalidate", ({ tags }: { readonly tags?: readonly string[] }) =>
      invalidated.push(tags ?? []),
    );
    await stage.outside.query("INSERT INTO users SELECT id, 'n' FROM generate_series(10, 1200) AS id");
    await until(() => app.feed.status().invalidations === 1, { what: "it is invalidated" });
    expect(invalidated).toEqual([[tableTag("users"), rowsTag("users")]]);
  });

  test("where the old key is not sent, a change drops all rows", async () => {
    await stage.outside.query(`
      ALTER TABLE users ADD CONSTRAINT by_name UNIQUE (name);
      ALTER TABLE users REPLICA IDENTITY USING INDEX by_name`);
    const app = await stage.member({ rows });
    await app.name(3);
    await stage.outside.query("UPDATE users SET id = 5 WHERE id = 3");
    await becomes(app, undefined, 3);
  });

  test("reads of a name that several tables have are tagged by table", async () => {
    await stage.outside.query("CREATE SCHEMA other; CREATE TABLE other.users (id int)");
    const app = await stage.member({ rows });
    const tags = [];
    for await (const key of app.cache.keys("sql:*")) tags.push(await app.cache.tags(key));
    expect(tags).toEqual([[tableTag("users"), tableTag("*")]]);
  });
});

describe("before it is alive, a feed", () => {
  test("says what is missing", async () => {
    const missing = stage.start({ publication: "nobody" });
    await expect(missing.feed.ready()).rejects.toMatchObject({
      code: "FEATURE_DISABLED",
      message: 'feed: there is no publication "nobody"',
    });
    await stage.outside.query("CREATE TABLE accounts (id int PRIMARY KEY)");
    const uncovered = stage.start({ tables: ["users", "accounts"] });
    await expect(uncovered.feed.ready()).rejects.toThrow("does not tell of every change of accounts");
    expect(uncovered.feed.status()).toMatchObject({ role: "down", alive: false });
    expect(uncovered.feed.health().ok).toBe(false);
    await stage.outside.query("CREATE PUBLICATION filtered FOR TABLE users WHERE (id > 1)");
    await expect(stage.start({ publication: "filtered" }).feed.ready()).rejects.toThrow(
      "every change of users",
    );
    await stage.outside.query("CREATE PUBLICATION partial FOR TABLE users WITH (publish = 'insert')");
    await expect(stage.start({ publication: "partial" }).feed.ready()).rejects.toThrow(
      "insert, update, delete and truncate",
    );
  });

  test("lets readers pass the cache by", async () => {
    const app = stage.start({ publication: "nobody" });
    await app.name();
    expect(await app.isCached()).toBe(false);
    expect(await app.db.query("SELECT 1 FROM users WHERE id = 1")).toMatchObject({ rowCount: 1 });
  });

  test("says that its slot waits for open transactions", async () => {
    const writer = await stage.outsider();
    await writer.query("BEGIN; INSERT INTO users VALUES (50, 'x')");
    const app = stage.start({ silentFor: 2 });
    await until(() => /waits for 1 open writing transaction/.test(app.feed.status().waiting ?? ""), {
      what: "it says so",
    });
    expect(app.feed.isAlive()).toBe(false);
    await writer.query("COMMIT");
    await app.feed.ready();
    expect(app.feed.status().waiting).toBeUndefined();
  });
});

test("a closed feed keeps nothing on the server", async () => {
  const app = await stage.member();
  await app.feed.close();
  await until(
    async () =>
      (await stage.outside.query("SELECT 1 FROM pg_replication_slots WHERE database = current_database()"))
        .rowCount === 0,
    { what: "the slot is gone" },
  );
  await expect(app.feed.ready()).rejects.toMatchObject({ code: "DISCONNECTED" });
  expect(app.feed.status()).toMatchObject({ role: "down", alive: false });
  expect(await app.isCached()).toBe(false);
});
