// What a database needs for a feed: the checks, and the statements that set it up.
import { expect, test } from "vitest";
import { checkSetUp, setUpSql } from "../../../src/db/feed/set-up.ts";
import { until } from "../../support/until.ts";
import { becomes, feedStage } from "./feed-stage.ts";

const stage = feedStage({ max_replication_slots: "1" });

const states = async (tables: readonly string[], publication = "xcache", user?: string) => {
  const findings = await checkSetUp({ ...stage.server.at(stage.name, user) }, { publication, tables });
  return Object.fromEntries(
    findings.map(({ name, state, detail }) => [name, state === "ok" ? state : detail]),
  );
};

test("a database that is ready has no problems", async () => {
  expect(await states(["users"])).toEqual({
    server: "ok",
    wal_level: "ok",
    privileges: "ok",
    publication: "ok",
    replica_identity: "ok",
    free_slots: "ok",
    retention: "max_slot_wal_keep_size is -1",
    synchronous_standby: "ok",
    schema_changes: "noticed by polling, within 2.5 times silentFor",
  });
});

test("each thing that is missing is named", async () => {
  await stage.outside.query(`
    CREATE ROLE reader LOGIN;
    CREATE TABLE keyless (id int);
    CREATE PUBLICATION everything FOR ALL TABLES;
    CREATE PUBLICATION part FOR TABLE users WHERE (id > 1) WITH (publish = 'insert')`);
  await stage.outside.query("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')");
  const lacking = await states(["orders"], "everything", "reader");
  await stage.outside.query("SELECT pg_drop_replication_slot('forgotten')");
  expect(lacking).toMatchObject({
    privileges: "role reader may not replicate",
    publication: "everything lacks orders",
    replica_identity: "UPDATE and DELETE fail on keyless",
    free_slots: expect.stringContaining("0 replication slots"),
    retention: expect.stringContaining("slots that nobody reads retain WAL: forgotten ("),
  });
  expect((await states(["users"], "part")).publication).toBe(
    "part does not publish insert, update, delete and truncate, leaves out rows of users",
  );
  expect((await states(["users"], "nobody")).publication).toBe("there is no publication nobody");
});

test("the printed statements set a database up, and its event trigger reports changes of the schema", async () => {
  await stage.outside.query("DROP PUBLICATION xcache");
  const statements = setUpSql({ publication: "xcache", tables: ["users"], notify: false });
  // ALTER SYSTEM is not allowed among other statements, and this server is configured already.
  await stage.outside.query(statements.filter((line) => !line.startsWith("ALTER SYSTEM")).join("\n"));
  expect((await states(["users"])).schema_changes).toBe("ok");
  const app = await stage.member();
  await stage.outside.query("ALTER TABLE users RENAME TO former; ALTER TABLE former RENAME TO users");
  await until(() => app.feed.status().invalidations === 1, {
    what: "the change of the schema is invalidated",
  });
  await stage.outside.query("UPDATE users SET name = 'Ada' WHERE id = 1");
  await becomes(app, "Ada");
});

test("names that need quotes are quoted", () => {
  const text = setUpSql({ publication: "My Feed", tables: ["App.Users", 'x."y"'], notify: true }).join("\n");
  expect(text).toContain(
    'CREATE TRIGGER "My Feed" AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON "App"."Users"',
  );
  expect(text).toContain('FUNCTION "My Feed_notify"()');
  expect(text).toContain('ON x."y" FOR EACH');
});
