// A file of SQLite for each test, with the same tables as the databases of PostgreSQL, and a cache that watches it.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach } from "vitest";
import { XCache } from "../../src/xcache.ts";
import { runFolder } from "../support/run-folder.ts";
import { type CountingCache, countingCache } from "./database.ts";

export interface SqliteFile {
  readonly path: string;
  readonly cache: CountingCache;
  /** Not watched. */
  readonly raw: Database.Database;
  /** Another connection to the file. */
  connect(): Database.Database;
  changeBehind(name: string): Promise<void>;
  atEnd(close: () => Promise<unknown>): void;
}

export function sqliteFile(): SqliteFile {
  let path: string;
  let raw: Database.Database;
  let cache: CountingCache;
  let closing: (() => Promise<unknown>)[] = [];
  beforeEach(() => {
    path = join(mkdtempSync(join(runFolder(), "sqlite-")), "data.db");
    raw = new Database(path);
    raw.pragma("journal_mode = WAL");
    raw.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
    raw.exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER)");
    raw.exec("INSERT INTO users VALUES (1, 'Ada')");
    const made = new XCache({ kvUrl: "memory://" });
    closing.push(() => made.disconnect());
    cache = countingCache(made);
  });
  afterEach(async () => {
    const ends = closing;
    closing = [];
    await Promise.allSettled(ends.map((end) => end()));
    raw.close();
  });
  return {
    get path() {
      return path;
    },
    get cache() {
      return cache;
    },
    get raw() {
      return raw;
    },
    connect: () => new Database(path),
    async changeBehind(name) {
      raw.prepare("UPDATE users SET name = ? WHERE id = 1").run(name);
    },
    atEnd(close) {
      closing.push(close);
    },
  };
}
