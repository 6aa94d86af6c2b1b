// The benchmark's tables and writes on PostgreSQL. Two-phase commits need max_prepared_transactions.
import pg from "pg";
import { postgresFeed, postgresNotifyFeed } from "../../dist/db/feed.js";
import { byTable, ROWS, users } from "./writes.mjs";

/** @typedef {import("./run.mjs").BenchDatabase} BenchDatabase */

const TABLES = ["bench_users", "bench_pets", "bench_logs", "bench_owned"];

const SET_UP = `
  DROP PUBLICATION IF EXISTS bench; DROP TABLE IF EXISTS ${TABLES.join(", ")}, bench_owners;
  DROP FUNCTION IF EXISTS bench_bump, bench_owner, bench_notify;
  CREATE TABLE bench_users (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_pets (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);
  CREATE TABLE bench_logs (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_owners (id int PRIMARY KEY);
  CREATE TABLE bench_owned (id int PRIMARY KEY REFERENCES bench_owners ON DELETE CASCADE);
  INSERT INTO bench_users SELECT id, 0 FROM generate_series(0, ${2 * ROWS - 1}) AS id;
  INSERT INTO bench_pets SELECT id, id, 0 FROM generate_series(0, ${ROWS - 1}) AS id;
  INSERT INTO bench_owners SELECT generate_series(0, ${ROWS - 1});
  INSERT INTO bench_owned SELECT generate_series(0, ${ROWS - 1});
  CREATE FUNCTION bench_bump(int) RETURNS void LANGUAGE sql AS 'UPDATE bench_users SET n = n + 1 WHERE id = $1';
  CREATE FUNCTION bench_owner() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN UPDATE bench_users SET n = n + 1 WHERE id = NEW.owner; RETURN NULL; END';
  CREATE TRIGGER bench_owner AFTER UPDATE ON bench_pets FOR EACH ROW EXECUTE FUNCTION bench_owner();
  CREATE FUNCTION bench_notify() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('bench', TG_RELID::text); RETURN NULL; END $$;
  CREATE PUBLICATION bench FOR TABLE ${TABLES.join(", ")}`;

const TRIGGERS = TABLES.map(
  (table) =>
    `CREATE TRIGGER bench AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${table} FOR EACH STATEMENT EXECUTE FUNCTION bench_notify()`,
).join(";");

/** COPY from the client, which a query of the package does not support by itself. */
class Copy {
  /** @param {string} text @param {string} rows @param {(error?: Error) => void} done */
  constructor(text, rows, done) {
    this.text = text;
    this.rows = rows;
    this.done = done;
  }

  submit(/** @type {any} */ connection) {
    connection.query(this.text);
  }

  handleCopyInResponse(/** @type {any} */ connection) {
    connection.sendCopyFromChunk(Buffer.from(this.rows));
    connection.endCopyFrom();
  }

  handleCommandComplete() {}

  handleReadyForQuery() {
    this.done();
  }

  handleError(/** @type {Error} */ error) {
    this.done(error);
  }
}

/** @type {BenchDatabase} */
export const postgres = {
  name: "PostgreSQL",
  tagsBy: ["table", "row"],
  tables: TABLES,
  async connect(address) {
    const client = new pg.Client(address);
    await client.connect();
    return {
      query: (text) => client.query(text),
      copy: (text, rows) =>
        new Promise((resolve, reject) => {
          const copy = new Copy(text, rows, (error) => (error === undefined ? resolve() : reject(error)));
          client.query(/** @type {any} */ (copy));
        }),
      end: () => client.end(),
    };
  },
  version: "SHOW server_version",
  setUp: SET_UP,
  writes: {
    ...users((id) => `SELECT bench_bump(${id})`),
    COPY: {
      ...byTable,
      write: (client, at) => client.copy?.("COPY bench_users FROM STDIN", `${4 * ROWS + at}\t0\n`),
    },
    TRUNCATE: { table: "bench_logs", statements: () => ["TRUNCATE bench_logs"] },
    "cascade of a foreign key": {
      table: "bench_owned",
      isOnce: true,
      statements: (id) => [`DELETE FROM bench_owners WHERE id = ${id}`],
    },
    "two-phase commit": {
      statements: (id) => [
        "BEGIN",
        `UPDATE bench_users SET n = n + 1 WHERE id = ${id}`,
        "PREPARE TRANSACTION 'bench'",
        "COMMIT PREPARED 'bench'",
      ],
    },
  },
  openPool: (address) => new pg.Pool({ connectionString: address, max: 4 }),
  async read(session, id) {
    return (await session.query("SELECT n FROM bench_users WHERE id = $1", [id])).rows[0].n;
  },
  feeds: {
    postgresFeed: { open: (options) => postgresFeed({ ...options, publication: "bench" }) },
    postgresNotifyFeed: {
      open: (options) => postgresNotifyFeed({ ...options, channel: "bench" }),
      setUp: TRIGGERS,
    },
  },
};
