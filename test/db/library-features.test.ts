// What each library's session does with a feed, with rows read by primary key and with streams, as the docs' table says.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { PrismaLibSql } from "@prisma/adapter-libsql";
import { PrismaMariaDb } from "@prisma/adapter-mariadb";
import { PrismaPg } from "@prisma/adapter-pg";
import { Kysely, MysqlDialect, PostgresDialect } from "kysely";
import mysql2 from "mysql2";
import type { RowDataPacket } from "mysql2/promise";
import pg from "pg";
import QueryStream from "pg-query-stream";
import postgres from "postgres";
import { DataTypes, type Options, Sequelize } from "sequelize";
import { describe, expect, test } from "vitest";
import type { ChangeFeed } from "../../src/core/db-session.ts";
import { rowTag } from "../../src/db/feed.ts";
import { cachedModule as cachedMysql2 } from "../../src/db/mysql2.ts";
import { cachedModule as cachedPg } from "../../src/db/pg.ts";
import { type CountingCache, cachedDependency, testDatabase } from "./database.ts";
import {
  drizzle,
  drizzleRows,
  mysqlDrizzle,
  mysqlDrizzleRows,
  mysqlUsers,
  remoteRows,
  sqliteRemote,
} from "./drizzle-session.ts";
import { knexRows, mysqlKnex, postgresKnex, sqliteKnex } from "./knex-session.ts";
import { kyselyRows, type Schema, sqliteDialect } from "./kysely-session.ts";
import { mysqlDatabase } from "./mysql-database.ts";
import { generateClient, prismaRows } from "./prisma-client.ts";
import { sqliteFile } from "./sqlite.ts";
import { managerRows, mysqlSource, postgresSource, sqliteSource, userSchema } from "./typeorm-session.ts";

const Cursor = createRequire(createRequire(import.meta.url).resolve("pg-query-stream"))("pg-cursor");

/** Says what a feed says; what feeds do is tested with them. */
class TestFeed implements ChangeFeed {
  alive = true;
  readonly rows = true;

  isAlive(): boolean {
    return this.alive;
  }

  covers(table: string): boolean {
    return table === "users";
  }

  rowKey(): ReturnType<ChangeFeed["rowKey"]> {
    return [{ name: "id", kind: "integer" }];
  }
}

interface Reader {
  /** The name of user 1, read by primary key. */
  read(): Promise<string>;
  /** The names of all users, streamed. Absent: the library has no streams. */
  stream?(): Promise<AsyncIterable<unknown>>;
}

interface Stage {
  readonly cache: CountingCache;
  changeBehind(name: string): Promise<void>;
}

type Watch = <Session extends object>(session: Session) => Session;
type Open = (watch: Watch, feed: ChangeFeed) => Promise<Reader>;

/** The table of the docs: for each library, its cells by the title of their column. */
const table = (() => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/guide/database-libraries.md"), "utf8");
  const lines = page.split("\n").filter((line) => line.startsWith("| ["));
  const titles = cellsOf(page.split("\n").find((line) => line.startsWith("| | "))!);
  return new Map(
    lines.map((line) => {
      const [library, ...cells] = cellsOf(line);
      return [library!, new Map(cells.map((cell, at) => [titles[at + 1]!, cell]))];
    }),
  );
})();

/** Without links. */
function cellsOf(line: string): string[] {
  const cells = line.replace(/\[([^\]]+)\]\([^)]+\)/g, "$1").split("|");
  return cells.slice(1, -1).map((cell) => cell.trim());
}

/** Whether the table says that a feature is there over this database. */
function isTold(library: string, feature: string, database: string): boolean {
  const cell = table.get(library)?.get(feature) ?? "";
  return cell === "yes" || cell.split(", ").includes(database);
}

function features(database: string, stage: Stage, cases: Readonly<Record<string, Open>>): void {
  describe.each(Object.entries(cases))("%s", (library, open) => {
    const [hasRowTags, hasStreams] = ["row tags", "streams"].map((each) => isTold(library, each, database));
    const opened = async () => {
      const feed = new TestFeed();
      const options = { cache: stage.cache, tableName: "users", feed };
      return { feed, reader: await open((session) => cachedDependency(() => session, options)(), feed) };
    };

    test("bypasses the cache while its feed is silent", async () => {
      expect(isTold(library, "feed", database)).toBe(true);
      const { feed, reader } = await opened();
      expect(await reader.read()).toBe("Ada");
      await stage.changeBehind("Bob");
      expect(await reader.read()).toBe("Ada");
      feed.alive = false;
      expect(await reader.read()).toBe("Bob");
    });

    test(`tags reads by primary key by ${hasRowTags ? "row" : "table"}`, async () => {
      const { reader } = await opened();
      await reader.read();
      const [key = ""] = await stage.cache.keys();
      const { cache } = stage.cache;
      expect((await cache.tags(key))?.includes(rowTag("users", 1))).toBe(hasRowTags);
    });

    test("streams past the cache", async () => {
      const { reader } = await opened();
      await reader.read();
      await stage.changeBehind("Bob");
      const names: unknown[] = [];
      for await (const row of (await reader.stream?.()) ?? []) names.push(JSON.stringify(row));
      expect(names).toEqual(hasStreams ? [expect.stringContaining("Bob")] : []);
      expect(await stage.cache.keys()).toHaveLength(1);
    });
  });
}

const define = (sequelize: Sequelize) => {
  const columns = { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.STRING };
  const User = sequelize.define("users", columns, { timestamps: false, tableName: "users" });
  return async () => (await User.findByPk(1))?.get("name") as string;
};

describe("over PostgreSQL", () => {
  const db = testDatabase();
  features("PostgreSQL", db, {
    "node-postgres": async (watch) => {
      const pool = watch(db.pool());
      return {
        read: async () => (await pool.query("SELECT name FROM users WHERE id = $1", [1])).rows[0].name,
        async stream() {
          const client = await pool.connect();
          const rows = client.query(new QueryStream("SELECT name FROM users"));
          rows.once("close", () => client.release());
          return rows;
        },
      };
    },
    "postgres.js": async (watch) => {
      const { host, port, user, database } = db.server.at(db.name);
      const real = postgres({ host, port, user, database, max: 4 } as never);
      db.atEnd(() => real.end({ timeout: 0 }));
      const sql = watch(real);
      return {
        read: async () => (await sql`SELECT name FROM users WHERE id = ${1}`)[0]?.name,
        stream: async () => sql`SELECT name FROM users`.cursor(),
      };
    },
    knex: async (watch) => {
      const session = watch(postgresKnex(db));
      return {
        read: knexRows(session).read,
        stream: async () => session("users").select("name").stream(),
      };
    },
    kysely: async (watch) => {
      const dialect = new PostgresDialect({ pool: db.pool(), cursor: Cursor });
      const session = watch(new Kysely<Schema>({ dialect }));
      return {
        read: kyselyRows(session).read,
        stream: async () => session.selectFrom("users").select("name").stream(),
      };
    },
    drizzle: async (watch) => ({ read: drizzleRows(watch(drizzle({ client: db.pool() }))).read }),
    typeorm: async (watch) => {
      const { manager } = watch(await postgresSource(db));
      return {
        read: managerRows(manager).read,
        stream: async () => await manager.createQueryBuilder(userSchema, "u").select("u.name").stream(),
      };
    },
    prisma: async (watch) => {
      const Client = await generateClient();
      const client = new Client({ adapter: new PrismaPg(db.server.at(db.name)) });
      db.atEnd(() => client.$disconnect());
      return { read: prismaRows(watch(client)).read };
    },
    Sequelize: async (_, feed) => {
      const { host, port, user, database } = db.server.at(db.name);
      const dialectModule = cachedPg(pg, { cache: db.cache, tableName: "users", feed });
      const at = { dialect: "postgres", dialectModule, host, port, username: user, database };
      const sequelize = new Sequelize({ logging: false, ...at } as Options);
      db.atEnd(() => sequelize.close());
      return { read: define(sequelize) };
    },
  });
});

describe("over MariaDB", () => {
  const db = mysqlDatabase();
  features("MySQL", db, {
    mysql2: async (watch) => {
      const pool = watch(db.pool());
      const { pool: inner } = pool as unknown as { readonly pool: mysql2.Pool };
      return {
        async read() {
          const [rows] = await pool.execute<RowDataPacket[]>("SELECT name FROM users WHERE id = ?", [1]);
          return String(rows[0]?.name);
        },
        stream: async () => inner.query("SELECT name FROM users").stream(),
      };
    },
    knex: async (watch) => {
      const session = watch(mysqlKnex(db));
      return {
        read: knexRows(session).read,
        stream: async () => session("users").select("name").stream(),
      };
    },
    kysely: async (watch) => {
      const pool = mysql2.createPool({ ...db.mariadb.at(db.name), connectionLimit: 4 });
      db.atEnd(() => pool.promise().end());
      const session = new Kysely<Schema>({ dialect: new MysqlDialect({ pool: watch(pool) }) });
      return {
        read: kyselyRows(session).read,
        stream: async () => session.selectFrom("users").select("name").stream(),
      };
    },
    drizzle: async (watch) => {
      const session = watch(mysqlDrizzle(db.pool()));
      return {
        read: mysqlDrizzleRows(session).read,
        stream: async () => session.select().from(mysqlUsers).prepare().iterator(),
      };
    },
    typeorm: async (watch) => {
      const { manager } = watch(await mysqlSource(db));
      return {
        read: managerRows(manager, "?").read,
        stream: async () => await manager.createQueryBuilder(userSchema, "u").select("u.name").stream(),
      };
    },
    prisma: async (watch) => {
      const { host, port, user, database } = db.mariadb.at(db.name);
      const Client = await generateClient("mysql");
      const client = new Client({ adapter: new PrismaMariaDb({ host, port, user, database } as never) });
      db.atEnd(() => client.$disconnect());
      return { read: prismaRows(watch(client)).read };
    },
    Sequelize: async (_, feed) => {
      const { host, port, user, database } = db.mariadb.at(db.name);
      const dialectModule = cachedMysql2(mysql2, { cache: db.cache, tableName: "users", feed });
      const at = { dialect: "mysql", dialectModule, host, port, username: user, database } as const;
      const sequelize = new Sequelize({ logging: false, ...at });
      db.atEnd(() => sequelize.close());
      return { read: define(sequelize) };
    },
  });
});

describe("over SQLite", () => {
  const file = sqliteFile();
  features("SQLite", file, {
    knex: async (watch) => ({ read: knexRows(watch(sqliteKnex(file))).read }),
    kysely: async (watch) => {
      const session = watch(new Kysely<Schema>({ dialect: sqliteDialect(file) }));
      return {
        read: kyselyRows(session).read,
        stream: async () => session.selectFrom("users").select("name").stream(),
      };
    },
    drizzle: async (watch) => ({ read: remoteRows(watch(sqliteRemote(file))).read }),
    typeorm: async (watch) => ({ read: managerRows(watch(await sqliteSource(file)).manager, "?").read }),
    prisma: async (watch) => {
      const Client = await generateClient("sqlite");
      const client = new Client({ adapter: new PrismaLibSql({ url: `file:${file.path}` }) });
      file.atEnd(() => client.$disconnect());
      return { read: prismaRows(watch(client)).read };
    },
  });
});
