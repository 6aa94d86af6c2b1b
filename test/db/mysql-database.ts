// A MariaDB database of its own for each test, on one real server for the tests of a file, and caches that watch its sessions.
import mysql from "mysql2/promise";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { XCache } from "../../src/xcache.ts";
import { type MariadbServer, startMariadb } from "../support/mariadb.ts";
import { type CountingCache, countingCache } from "./database.ts";

export interface MysqlDatabase {
  readonly mariadb: MariadbServer;
  readonly name: string;
  readonly cache: CountingCache;
  /** Not watched, to look behind the cache's back; one connection. */
  readonly raw: mysql.Connection;
  /** Closed at the end of the test. */
  pool(options?: mysql.PoolOptions, user?: string): mysql.Pool;
  connection(options?: mysql.ConnectionOptions): Promise<mysql.Connection>;
  memoryCache(): CountingCache;
  /** To be done at the end of the test. */
  atEnd(close: () => Promise<unknown>): void;
  /** Changes a row where nobody sees it. */
  changeBehind(name: string): Promise<void>;
}

/** To be called once in a test file. Each test finds the tables `users (id, name)` with one row and `orders`. */
export function mysqlDatabase(): MysqlDatabase {
  let mariadb: MariadbServer;
  let name: string;
  let raw: mysql.Connection;
  let cache: CountingCache;
  let closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    mariadb = await startMariadb();
  });
  afterAll(() => mariadb?.stop());
  beforeEach(async () => {
    name = await mariadb.createDatabase();
    raw = await mysql.createConnection({ ...mariadb.at(name), multipleStatements: true });
    await raw.query(`CREATE TABLE users (id int PRIMARY KEY, name varchar(100) NOT NULL);
      CREATE TABLE orders (id int PRIMARY KEY, user_id int);
      INSERT INTO users VALUES (1, 'Ada')`);
    cache = database.memoryCache();
  });
  afterEach(async () => {
    const ends = closing;
    closing = [];
    await Promise.allSettled(ends.map((end) => end()));
    await raw.end().catch(() => {});
  });
  const database: MysqlDatabase = {
    get mariadb() {
      return mariadb;
    },
    get name() {
      return name;
    },
    get raw() {
      return raw;
    },
    get cache() {
      return cache;
    },
    pool(options, user) {
      const pool = mysql.createPool({ ...mariadb.at(name, user), connectionLimit: 4, ...options });
      closing.push(() => pool.end());
      return pool;
    },
    async connection(options) {
      const connection = await mysql.createConnection({ ...mariadb.at(name), ...options });
      connection.on("error", () => {});
      closing.push(() => connection.end());
      return connection;
    },
    memoryCache() {
      const made = new XCache({ kvUrl: "memory://" });
      closing.push(() => made.disconnect());
      return countingCache(made);
    },
    atEnd(close) {
      closing.push(close);
    },
    async changeBehind(changed) {
      await raw.query("UPDATE users SET name = ? WHERE id = 1", [changed]);
    },
  };
  return database;
}
