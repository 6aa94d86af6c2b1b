// The benchmark's tables and writes on MariaDB.
import mysql from "mysql2/promise";
import { mysqlFeed } from "../../dist/db/feed.js";
import { ROWS, users } from "./writes.mjs";

/** @typedef {import("./run.mjs").BenchDatabase} BenchDatabase */

const SET_UP = `
  DROP TABLE IF EXISTS bench_owned, bench_owners, bench_logs, bench_pets, bench_users; DROP PROCEDURE IF EXISTS bench_bump;
  CREATE TABLE bench_users (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_pets (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);
  CREATE TABLE bench_logs (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_owners (id int PRIMARY KEY);
  CREATE TABLE bench_owned (id int PRIMARY KEY, FOREIGN KEY (id) REFERENCES bench_owners (id) ON DELETE CASCADE);
  INSERT INTO bench_users SELECT seq, 0 FROM seq_0_to_${2 * ROWS - 1};
  INSERT INTO bench_pets SELECT seq, seq, 0 FROM seq_0_to_${ROWS - 1};
  INSERT INTO bench_owners SELECT seq FROM seq_0_to_${ROWS - 1};
  INSERT INTO bench_owned SELECT seq FROM seq_0_to_${ROWS - 1};
  CREATE PROCEDURE bench_bump(which int) UPDATE bench_users SET n = n + 1 WHERE id = which;
  CREATE TRIGGER bench_owner AFTER UPDATE ON bench_pets FOR EACH ROW UPDATE bench_users SET n = n + 1 WHERE id = NEW.owner`;

/** @type {BenchDatabase} */
export const mariadb = {
  name: "MariaDB",
  tagsBy: ["table"],
  tables: ["bench_users", "bench_pets", "bench_logs", "bench_owned"],
  async connect(address) {
    const client = await mysql.createConnection({ uri: address, multipleStatements: true });
    return { query: (text) => client.query(text), end: () => client.end() };
  },
  version: "SELECT VERSION() AS server_version",
  setUp: SET_UP,
  writes: {
    ...users((id) => `CALL bench_bump(${id})`),
    TRUNCATE: { table: "bench_logs", statements: () => ["TRUNCATE bench_logs"] },
    "cascade of a foreign key": {
      table: "bench_owned",
      isOnce: true,
      statements: (id) => [`DELETE FROM bench_owners WHERE id = ${id}`],
    },
    "two-phase commit": {
      statements: (id) => [
        "XA START 'bench'",
        `UPDATE bench_users SET n = n + 1 WHERE id = ${id}`,
        "XA END 'bench'",
        "XA PREPARE 'bench'",
        "XA COMMIT 'bench'",
      ],
    },
  },
  openPool: (address) => mysql.createPool({ uri: address, connectionLimit: 4 }),
  async read(session, id) {
    const [rows] = await session.query("SELECT n FROM bench_users WHERE id = ?", [id]);
    return rows[0].n;
  },
  feeds: { mysqlFeed: { open: (options) => mysqlFeed(options) } },
};
