// The question about a session's settings and the catalogue: it reports every setting, whatever the search path hides, and never
// harms the transaction or the connection that it is sent over.
import type pg from "pg";
import postgres, { type ReservedSql, type Sql } from "postgres";
import { describe, expect, test } from "vitest";
import { cachedDependency, testDatabase } from "../../db/database.ts";

const db = testDatabase();

const watched = <S extends object>(session: S): S =>
  cachedDependency(() => session, { cache: db.cache, tableName: "users" })();

const READ = "SELECT name FROM users WHERE id = 1";
const nameOf = async (client: Pick<pg.ClientBase, "query">, text = READ): Promise<unknown> =>
  (await client.query<{ name: string }>(text)).rows[0]?.name;

/** Each with a value that is not its default. */
const SETTINGS = [
  ["search_path", "public, pg_catalog"],
  ["timezone", "Asia/Tokyo"],
  ["datestyle", "German"],
  ["intervalstyle", "iso_8601"],
  ["bytea_output", "escape"],
  ["extra_float_digits", "-5"],
  ["client_encoding", "LATIN1"],
  ["lc_monetary", "POSIX"],
  ["lc_numeric", "POSIX"],
  ["lc_time", "POSIX"],
  ["standard_conforming_strings", "off"],
  ["backslash_quote", "off"],
  ["transform_null_equals", "on"],
  ["array_nulls", "off"],
  ["xmlbinary", "hex"],
  ["xmloption", "document"],
  ["row_security", "off"],
  ["default_text_search_config", "pg_catalog.german"],
  ["gin_fuzzy_search_limit", "7"],
  ["quote_all_identifiers", "on"],
  ["timezone_abbreviations", "Australia"],
  ["role", "other_role"],
  ["pg_trgm.similarity_threshold", "0.9"],
  ["pg_trgm.word_similarity_threshold", "0.9"],
  ["pg_trgm.strict_word_similarity_threshold", "0.9"],
  ["hnsw.ef_search", "7"],
  ["hnsw.iterative_scan", "relaxed_order"],
  ["ivfflat.probes", "7"],
] as const;

describe("the key", () => {
  test("has every setting that changes how rows look", async () => {
    await db.raw.query("DROP ROLE IF EXISTS other_role; CREATE ROLE other_role SUPERUSER");
    const client = watched(await db.client());
    await nameOf(client);
    for (const [at, [setting, value]] of SETTINGS.entries()) {
      await client.query("SELECT set_config($1, $2, false)", [setting, value]);
      await nameOf(client);
      expect(await db.cache.keys(), setting).toHaveLength(at + 2);
    }
  });

  test("does not take the value of a setting for that of its neighbour", async () => {
    const client = watched(await db.client());
    const values = ["a,b", '"a",b', "{a},NULL", "a\u001fb", "a\u001eb", 'a\\"', "NULL"];
    // An unknown extension has settings of any text.
    for (const value of values) {
      for (const name of ["hnsw.ef_search", "hnsw.iterative_scan"]) {
        await client.query("RESET ALL");
        await client.query("SELECT set_config($1, $2, false)", [name, value]);
        await nameOf(client);
      }
    }
    expect(await db.cache.keys()).toHaveLength(2 * values.length);
  });
});

test("functions that hide those of the database do not answer in their place", async () => {
  await db.raw.query(`
    CREATE SCHEMA hiding;
    CREATE FUNCTION hiding.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'same'::text $$;
    CREATE FUNCTION hiding.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT 'same'::text $$;
    CREATE FUNCTION hiding.current_schemas(boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'same'::text $$;
    CREATE FUNCTION hiding.current_database() RETURNS text LANGUAGE sql AS $$ SELECT 'same'::text $$;
    CREATE FUNCTION hiding.chr(int) RETURNS text LANGUAGE sql AS $$ SELECT ''::text $$;
    CREATE FUNCTION hiding.concat(text, oid) RETURNS text LANGUAGE sql AS $$ SELECT ''::text $$;
    CREATE FUNCTION hiding.pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
    CREATE FUNCTION hiding.pg_my_temp_schema() RETURNS oid LANGUAGE sql AS $$ SELECT 0::oid $$;
    CREATE FUNCTION hiding.txid_current_if_assigned() RETURNS bigint LANGUAGE sql AS $$ SELECT NULL::bigint $$;
    CREATE FUNCTION hiding.string_to_array(text, text) RETURNS text[] LANGUAGE sql AS $$ SELECT '{}'::text[] $$`);
  const session = (zone: string) =>
    watched(db.pool({ options: `-c search_path=hiding,pg_catalog,public -c timezone=${zone}` }));
  const text = "SELECT '2020-01-01T00:00:00Z'::timestamptz::text AS name FROM users";
  const [tokyo, utc] = [session("Asia/Tokyo"), session("UTC")];
  for (let round = 0; round < 2; round++) {
    expect(await nameOf(tokyo, text)).toBe("2020-01-01 09:00:00+09");
    expect(await nameOf(utc, text)).toBe("2020-01-01 00:00:00+00");
  }
  // What writes touch is asked with the same search path.
  await db.raw.query(`
    ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE; INSERT INTO orders VALUES (1, 1)`);
  await utc.query("DELETE FROM users");
  expect(db.cache.invalidated.flat()).toContain("table:orders");
});

test("a view is looked into, whatever a backslash means to the session", async () => {
  await db.raw.query(`
    CREATE FUNCTION noted() RETURNS text LANGUAGE sql AS $$ SELECT name FROM users WHERE id = 1 $$;
    CREATE VIEW seen AS SELECT noted() AS name;
    CREATE VIEW today AS SELECT current_date::text AS name FROM users;
    CREATE VIEW plain AS SELECT name FROM users`);
  for (const setting of ["on", "off"]) {
    const options = `-c standard_conforming_strings=${setting} -c escape_string_warning=off`;
    const session = cachedDependency(() => db.pool({ options }), { cache: db.cache, tableName: "*" })();
    for (const [view, entries] of [
      ["seen", 0],
      ["today", 0],
      ["plain", 1],
    ] as const) {
      await db.cache.cache.clear();
      for (let round = 0; round < 3; round++) await session.query(`SELECT name FROM ${view}`);
      expect(await db.cache.keys(), `${view}, ${setting}`).toHaveLength(entries);
    }
  }
});

test("a view is asked about together with functions, first at length and then by its stamp", async () => {
  await db.raw.query("CREATE VIEW named AS SELECT id, name FROM users");
  const opened = () => cachedDependency(() => db.pool(), { cache: db.cache, tableName: "*" })();
  const isStored = async (session: pg.Pool, condition: string): Promise<boolean> => {
    const before = (await db.cache.keys()).length;
    await nameOf(session, `SELECT lower(name) AS name FROM named WHERE id = 1 AND ${condition}`);
    return (await db.cache.keys()).length > before;
  };
  const first = opened();
  for (const id of [1, 2, 3, 4]) expect(await isStored(first, `id < ${id}`)).toBe(true);
  await db.raw.query("CREATE OR REPLACE VIEW named AS SELECT id, name || random() AS name FROM users");
  for (const id of [5, 6, 7]) expect(await isStored(first, `id < ${id}`)).toBe(false);
  await db.raw.query("CREATE OR REPLACE VIEW named AS SELECT id, name FROM users");
  const second = opened();
  for (const id of [8, 9]) expect(await isStored(second, `id < ${id}`)).toBe(true);
  await db.raw.query(
    "CREATE FUNCTION lower(users) RETURNS text LANGUAGE sql AS $$ SELECT name FROM users $$",
  );
  for (const id of [10, 11, 12]) expect(await isStored(second, `id < ${id}`)).toBe(false);
});

/** What takes prepared statements away from a connection, or changes what they return. */
const TAKEN_AWAY = [
  "DISCARD ALL",
  "DEALLOCATE ALL",
  "DISCARD PLANS",
  "CREATE SCHEMA IF NOT EXISTS other; SET search_path TO other, public",
  "ALTER TABLE users ALTER COLUMN name TYPE varchar(50)",
  "ALTER ROLE CURRENT_USER SET timezone TO 'UTC'",
];

describe("over node-postgres, reads and transactions work after", () => {
  test.each(TAKEN_AWAY)("%s", async (change) => {
    const client = watched(await db.client());
    for (let round = 0; round < 8; round++) await nameOf(client, `${READ} AND ${round} = ${round}`);
    await client.query(change);
    expect(await nameOf(client, `${READ} AND true`)).toBe("Ada");
    await client.query("BEGIN");
    for (let round = 0; round < 8; round++) await nameOf(client, `${READ} AND -${round} < 1`);
    // Settings are asked for again inside of it.
    await client.query("SET LOCAL timezone TO 'Asia/Tokyo'");
    expect(await nameOf(client, `${READ} AND NOT false`)).toBe("Ada");
    await client.query("SAVEPOINT one");
    await expect(client.query("SELECT 1 / 0")).rejects.toMatchObject({ code: "22012" });
    await client.query("ROLLBACK TO one");
    expect(await nameOf(client, `${READ} AND 2 > 1`)).toBe("Ada");
    await client.query("UPDATE users SET name = 'Bob'");
    expect(await client.query("COMMIT")).toMatchObject({ command: "COMMIT" });
    expect(await nameOf(client)).toBe("Bob");
  });
});

describe("over postgres.js, reads and transactions work after", () => {
  const connect = (options: object = {}): Sql => {
    const { host, port, user, database } = db.server.at(db.name);
    const sql = postgres({ host, port, user, database, max: 1, onnotice: () => {}, ...options } as never);
    db.atEnd(() => sql.end({ timeout: 5 }));
    return sql as Sql;
  };
  /** The application's own statements are not prepared, so that whatever fails is a question. */
  const read = async (sql: Sql | ReservedSql, condition: string): Promise<unknown> =>
    (await sql.unsafe(`${READ} AND ${condition}`))[0]?.name;

  test.each(TAKEN_AWAY)("%s", async (change) => {
    const real = connect();
    const sql = watched(real);
    for (let round = 0; round < 8; round++) await read(sql, `${round} = ${round}`);
    await real.unsafe(change);
    const reserved = await sql.reserve();
    await reserved.unsafe("BEGIN");
    for (let round = 0; round < 8; round++) expect(await read(reserved, `-${round} < 1`)).toBe("Ada");
    await reserved.unsafe("UPDATE users SET name = 'Bob'");
    expect(await reserved.unsafe("COMMIT")).toMatchObject({ command: "COMMIT" });
    reserved.release();
    expect(await read(sql, "true")).toBe("Bob");
  });
});
