// The benchmark's tables and writes on PostgreSQL.
import pg from "pg";
import { postgresFeed, postgresNotifyFeed } from "../../dist/db/feed.js";

/** @typedef {import("./run.mjs").BenchDatabase} BenchDatabase */

const SET_UP = `
  DROP PUBLICATION IF EXISTS bench; DROP TABLE IF EXISTS bench_pets, bench_users; DROP FUNCTION IF EXISTS bench_bump, bench_owner, bench_notify;
  CREATE TABLE bench_users (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_pets (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);
  INSERT INTO bench_users SELECT id, 0 FROM generate_series(0, 1999) AS id;
  INSERT INTO bench_pets SELECT id, id, 0 FROM generate_series(0, 999) AS id;
  CREATE FUNCTION bench_bump(int) RETURNS void LANGUAGE sql AS 'UPDATE bench_users SET n = n + 1 WHERE id = $1';
  CREATE FUNCTION bench_owner() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE bench_users SET n = n + 1 WHERE id = NEW.owner; RETURN NULL; END';
  CREATE TRIGGER bench_owner AFTER UPDATE ON bench_pets FOR EACH ROW EXECUTE FUNCTION bench_owner();
  CREATE FUNCTION bench_notify() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('bench', TG_RELID::text); RETURN NULL; END $$;
  CREATE PUBLICATION bench FOR TABLE bench_users, bench_pets`;

const TRIGGERS = ["bench_users", "bench_pets"]
  .map(
    (table) =>
      `CREATE TRIGGER bench AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION bench_notify()`,
  )
  .join(";");

/** @type {BenchDatabase} */
export const postgres = {
  async connect(address) {
    const client = new pg.Client(address);
    await client.connect();
    return { query: (text) => client.query(text), end: () => client.end() };
  },
  setUp: SET_UP,
  callWrite: (id) => `SELECT bench_bump(${id})`,
  feeds: {
    postgresFeed: { open: (options) => postgresFeed({ ...options, publication: "bench" }) },
    postgresNotifyFeed: {
      open: (options) => postgresNotifyFeed({ ...options, channel: "bench" }),
      setUp: TRIGGERS,
    },
  },
};
