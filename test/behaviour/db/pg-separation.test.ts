// Nobody is given what another session, role or tenant has read.
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { cachedDependency, testDatabase } from "../../db/database.ts";

const db = testDatabase();

const READ = "SELECT name FROM users";

const watched = <S extends object>(session: S): S =>
  cachedDependency(() => session, { cache: db.cache, tableName: "users" })();

const namesIn = async (session: Pick<pg.ClientBase, "query">, sql = READ): Promise<string[]> =>
  (await session.query<{ name: string }>(sql)).rows.map(({ name }) => name);

/** A schema `tenant` with a table `users` of its own. */
const makeTenant = () =>
  db.raw.query(
    "CREATE SCHEMA tenant; CREATE TABLE tenant.users (name text); INSERT INTO tenant.users VALUES ('Tenant')",
  );

describe("a connection with another search path", () => {
  test.each([
    ["set by itself", (client: pg.ClientBase) => client.query("SET search_path TO tenant")],
    [
      "set by a function",
      (client: pg.ClientBase) => client.query("SELECT set_config('search_path', 'tenant', false)"),
    ],
  ])("%s sees its own tables, and poisons nobody when it is given back", async (_, change) => {
    await makeTenant();
    const session = watched(db.pool({ max: 1 }));
    expect(await namesIn(session)).toEqual(["Ada"]);
    const client = await session.connect();
    expect(await namesIn(client)).toEqual(["Ada"]);
    await change(client);
    expect(await namesIn(client)).toEqual(["Tenant"]);
    expect(await namesIn(client)).toEqual(["Tenant"]);
    client.release();
    // The cached answer is that of the pool as it was made; what is not cached comes from the changed connection.
    expect(await namesIn(session)).toEqual(["Ada"]);
    expect(await namesIn(session, `${READ} WHERE true`)).toEqual(["Tenant"]);
    expect(await namesIn(session)).toEqual(["Ada"]);
    expect(await namesIn(watched(db.pool()), `${READ} WHERE true`)).toEqual(["Ada"]);
  });

  test.each(["SET LOCAL search_path TO tenant", "SELECT set_config('search_path', 'tenant', true)"])(
    "by %s has its own again after going back to a savepoint",
    async (change) => {
      await makeTenant();
      const client = watched(await db.client());
      await client.query("BEGIN");
      expect(await namesIn(client)).toEqual(["Ada"]);
      await client.query("SAVEPOINT before");
      await client.query(change);
      expect(await namesIn(client)).toEqual(["Tenant"]);
      await client.query("ROLLBACK TO before");
      expect(await namesIn(client)).toEqual(["Ada"]);
      await client.query("COMMIT");
    },
  );

  test("set where the session does not see it is noticed", async () => {
    await makeTenant();
    const pool = db.pool({ max: 1 });
    const session = watched(pool);
    await namesIn(session);
    for (const hidden of ["SET search_path TO tenant", "SELECT set_config('search_path', 'tenant', false)"]) {
      const raw = await pool.connect();
      await raw.query(hidden);
      raw.release();
      const client = await session.connect();
      expect(await namesIn(client)).toEqual(["Tenant"]);
      await client.query("SET search_path TO DEFAULT");
      expect(await namesIn(client)).toEqual(["Ada"]);
      client.release();
    }
  });

  test("for one transaction only has it for that one", async () => {
    await makeTenant();
    const client = watched(await db.client());
    await client.query("BEGIN");
    await client.query("SET LOCAL search_path TO tenant");
    expect(await namesIn(client)).toEqual(["Tenant"]);
    await client.query("COMMIT");
    expect(await namesIn(client)).toEqual(["Ada"]);
    await client.query("BEGIN");
    await client.query("SET search_path TO tenant");
    expect(await namesIn(client)).toEqual(["Tenant"]);
    await client.query("ROLLBACK");
    expect(await namesIn(client)).toEqual(["Ada"]);
  });

  test("set at connect time, by options or by a listener, has its own entries", async () => {
    await makeTenant();
    expect(await namesIn(watched(db.pool()))).toEqual(["Ada"]);
    expect(await namesIn(watched(db.pool({ options: "-c search_path=tenant" })))).toEqual(["Tenant"]);
    const listening = db.pool();
    listening.on("connect", (client) => {
      client.query("SET search_path TO tenant").catch(() => {});
    });
    const session = watched(listening);
    expect(await namesIn(session)).toEqual(["Tenant"]);
    expect(await namesIn(session)).toEqual(["Tenant"]);
  });
});

describe("a role", () => {
  test("that may not read is refused, whatever others have read", async () => {
    await db.raw.query("DROP ROLE IF EXISTS stranger");
    await db.raw.query("CREATE ROLE stranger LOGIN");
    expect(await namesIn(watched(db.pool()))).toEqual(["Ada"]);
    await expect(namesIn(watched(db.pool({}, "stranger")))).rejects.toMatchObject({ code: "42501" });
    const client = watched(await db.client());
    expect(await namesIn(client)).toEqual(["Ada"]);
    await client.query("SET ROLE stranger");
    await expect(namesIn(client)).rejects.toMatchObject({ code: "42501" });
    await client.query("RESET ROLE");
    expect(await namesIn(client)).toEqual(["Ada"]);
  });
});

describe("rows that differ per user", () => {
  test("behind row security are never cached", async () => {
    await db.raw.query("DROP ROLE IF EXISTS tenant_role");
    await db.raw.query("CREATE ROLE tenant_role LOGIN; GRANT SELECT ON users TO tenant_role");
    await db.raw.query("INSERT INTO users VALUES (2, 'Bob')");
    await db.raw.query("ALTER TABLE users ENABLE ROW LEVEL SECURITY");
    await db.raw.query("CREATE POLICY own ON users USING (name = current_setting('app.tenant'))");
    const pool = db.pool({}, "tenant_role");
    // The setting is made by the dependency itself, before the session is handed out.
    const sessionOf = cachedDependency(
      async function* (tenant: string) {
        const client = await pool.connect();
        await client.query("SELECT set_config('app.tenant', $1, false)", [tenant]);
        try {
          yield client;
        } finally {
          client.release();
        }
      },
      { cache: db.cache, tableName: "users" },
    );
    for (const tenant of ["Ada", "Bob", "Ada"]) {
      for await (const client of sessionOf(tenant)) expect(await namesIn(client)).toEqual([tenant]);
    }
    expect(await db.cache.keys()).toEqual([]);
  });

  test("of a view are never cached, since it may depend on anything", async () => {
    await db.raw.query("ALTER TABLE users RENAME TO people");
    await db.raw.query(
      "CREATE VIEW users AS SELECT * FROM people WHERE name = current_setting('app.tenant', true)",
    );
    const client = watched(await db.client());
    await client.query("SET app.tenant TO 'Ada'");
    expect(await namesIn(client)).toEqual(["Ada"]);
    await client.query("SET app.tenant TO 'Bob'");
    expect(await namesIn(client)).toEqual([]);
    expect(await db.cache.keys()).toEqual([]);
  });

  test("of a temporary table are never cached", async () => {
    const client = watched(await db.client());
    expect(await namesIn(client)).toEqual(["Ada"]);
    await client.query("CREATE TEMP TABLE users (name text)");
    await client.query("INSERT INTO pg_temp.users VALUES ('Mine')");
    expect(await namesIn(client)).toEqual(["Mine"]);
    expect(await namesIn(watched(db.pool()))).toEqual(["Ada"]);
  });
});

describe("what changes how rows look", () => {
  test.each([
    ["SET timezone TO 'Asia/Tokyo'", "SELECT '2020-01-01T00:00:00Z'::timestamptz::text AS name FROM users"],
    ["SET datestyle TO 'German'", "SELECT '2020-01-02'::date::text AS name FROM users"],
    ["SET intervalstyle TO 'iso_8601'", "SELECT '1 day'::interval::text AS name FROM users"],
    ["SET bytea_output TO 'escape'", "SELECT decode('00ff', 'hex')::text AS name FROM users"],
    ["SET extra_float_digits TO -5", "SELECT (0.1::float8 / 3)::text AS name FROM users"],
  ])("%s is part of the key", async (setting, sql) => {
    const client = watched(await db.client());
    const before = await namesIn(client, sql);
    await client.query(setting);
    expect(await namesIn(client, sql)).toEqual(await valueWith(setting, sql));
    expect(await namesIn(client, sql)).not.toEqual(before);
    await client.query("RESET ALL");
    expect(await namesIn(client, sql)).toEqual(before);
  });

  async function valueWith(setting: string, sql: string): Promise<string[]> {
    const plain = await db.client();
    await plain.query(setting);
    return namesIn(plain, sql);
  }
});

test("databases of one server, and one after a restart, do not share entries", async () => {
  const other = await db.server.createDatabase();
  const elsewhere = await db.client({ database: other });
  await elsewhere.query("CREATE TABLE users (name text); INSERT INTO users VALUES ('Elsewhere')");
  expect(await namesIn(watched(db.pool()))).toEqual(["Ada"]);
  expect(await namesIn(watched(elsewhere))).toEqual(["Elsewhere"]);
  expect(await db.cache.keys()).toHaveLength(2);
  await db.server.restart("SIGINT");
  const after = await db.client();
  await after.query("UPDATE users SET name = 'Restored'");
  expect(await namesIn(watched(after))).toEqual(["Restored"]);
});
