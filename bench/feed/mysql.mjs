// The benchmark's tables and writes on MariaDB.
import mysql from "mysql2/promise";
import { mysqlFeed } from "../../dist/db/feed.js";

/** @typedef {import("./run.mjs").BenchDatabase} BenchDatabase */

const SET_UP = `
  DROP TABLE IF EXISTS bench_pets, bench_users; DROP PROCEDURE IF EXISTS bench_bump;
  CREATE TABLE bench_users (id int PRIMARY KEY, n int NOT NULL);
  CREATE TABLE bench_pets (id int PRIMARY KEY, owner int NOT NULL, n int NOT NULL);
  INSERT INTO bench_users SELECT seq, 0 FROM seq_0_to_1999;
  INSERT INTO bench_pets SELECT seq, seq, 0 FROM seq_0_to_999;
  CREATE PROCEDURE bench_bump(which int) UPDATE bench_users SET n = n + 1 WHERE id = which;
  CREATE TRIGGER bench_owner AFTER UPDATE ON bench_pets FOR EACH ROW UPDATE bench_users SET n = n + 1 WHERE id = NEW.owner`;

/** @type {BenchDatabase} */
export const mariadb = {
  async connect(address) {
    const client = await mysql.createConnection({ uri: address, multipleStatements: true });
    return { query: (text) => client.query(text), end: () => client.end() };
  },
  setUp: SET_UP,
  callWrite: (id) => `CALL bench_bump(${id})`,
  feeds: { mysqlFeed: { open: (options) => mysqlFeed(options) } },
};
