// What each library's session does with a feed, with rows read by primary key and with streams, as the docs' table says.
import { createRequire } from "node:module";
import { PrismaLibSql } from "@prisma/adapter-libsql";
import { PrismaPg } from "@prisma/adapter-pg";
import { Kysely, MysqlDialect, PostgresDialect } from "kysely";
import mysql2 from "mysql2";
import type { RowDataPacket } from "mysql2/promise";
import pg from "pg";
import QueryStream from "pg-query-stream";
import postgres from "postgres";
import { DataTypes, type Options, Sequelize } from "sequelize";
import { afterAll, describe, expect, test } from "vitest";
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
import { generateClient, prismaRows, removeClient } from "./prisma-client.ts";
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
interface Case {
  open(watch: Watch, feed: ChangeFeed): Promise<Reader>;
  readonly rowTags: boolean;
}

function features(stage: Stage, cases: Readonly<Record<string, Case>>): void {
  describe.each(Object.entries(cases))("%s", (_, { open, rowTags }) => {
    const opened = async () => {
      const feed = new TestFeed();
      const options = { cache: stage.cache, tableName: "users", feed };
      return { feed, reader: await open((session) => cachedDependency(() => session, options)(), feed) };
    };

    test("bypasses the cache while its feed is silent", async () => {
      const { feed, reader } = await opened();
      expect(await reader.read()).toBe("Ada");
      await stage.changeBehind("Bob");
      expect(await reader.read()).toBe("Ada");
      feed.alive = false;
      expect(await reader.read()).toBe("Bob");
    });

    test(`tags reads by primary key by ${rowTags ? "row" : "table"}`, async () => {
      const { reader } = await opened();
      await reader.read();
      const [key = ""] = await stage.cache.keys();
      const { cache } = stage.cache;
      expect((await cache.tags(key))?.includes(rowTag("users", 1))).toBe(rowTags);
    });

    test("streams past the cache", async () => {
      const { reader } = await opened();
      await reader.read();
      await stage.changeBehind("Bob");
      const names: unknown[] = [];
      for await (const row of (await reader.stream?.()) ?? []) names.push(JSON.stringify(row));
      if (reader.stream) expect(names).toEqual([expect.stringContaining("Bob")]);
      expect(await stage.cache.keys()).toHaveLength(1);
    });
  });
}

afterAll(removeClient);

const define = (sequelize: Sequelize) => {
  const columns = { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.STRING };
  const User = sequelize.define("users", columns, { timestamps: false, tableName: "users" });
  return async () => (await User.findByPk(1))?.get("name") as string;
};

describe("over PostgreSQL", () => {
  const db = testDatabase();
  features(db, {
    "node-postgres": {
      rowTags: true,
      async open(watch) {
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
    },
    "postgres.js": {
      rowTags: true,
      async open(watch) {
        const { host, port, user, database } = db.server.at(db.name);
        const real = postgres({ host, port, user, database, max: 4 } as never);
        db.atEnd(() => real.end({ timeout: 0 }));
        const sql = watch(real);
        return {
          read: async () => (await sql`SELECT name FROM users WHERE id = ${1}`)[0]?.name,
          stream: async () => sql`SELECT name FROM users`.cursor(),
        };
      },
    },
    knex: {
      rowTags: true,
      async open(watch) {
        const session = watch(postgresKnex(db));
        return {
          read: knexRows(session).read,
          stream: async () => session("users").select("name").stream(),
        };
      },
    },
    kysely: {
      rowTags: true,
      async open(watch) {
        const dialect = new PostgresDialect({ pool: db.pool(), cursor: Cursor });
        const session = watch(new Kysely<Schema>({ dialect }));
        return {
          read: kyselyRows(session).read,
          stream: async () => session.selectFrom("users").select("name").stream(),
        };
      },
    },
    drizzle: {
      rowTags: true,
      open: async (watch) => ({ read: drizzleRows(watch(drizzle({ client: db.pool() }))).read }),
    },
    typeorm: {
      rowTags: true,
      async open(watch) {
        const { manager } = watch(await postgresSource(db));
        return {
          read: managerRows(manager).read,
          stream: async () => await manager.createQueryBuilder(userSchema, "u").select("u.name").stream(),
        };
      },
    },
    prisma: {
      rowTags: true,
      async open(watch) {
        const Client = await generateClient();
        const client = new Client({ adapter: new PrismaPg(db.server.at(db.name)) });
        db.atEnd(() => client.$disconnect());
        return { read: prismaRows(watch(client)).read };
      },
    },
    Sequelize: {
      rowTags: false,
      async open(_, feed) {
        const { host, port, user, database } = db.server.at(db.name);
        const dialectModule = cachedPg(pg, { cache: db.cache, tableName: "users", feed });
        const at = { dialect: "postgres", dialectModule, host, port, username: user, database };
        const sequelize = new Sequelize({ logging: false, ...at } as Options);
        db.atEnd(() => sequelize.close());
        return { read: define(sequelize) };
      },
    },
  });
});

describe("over MariaDB", () => {
  const db = mysqlDatabase();
  features(db, {
    "execute of mysql2": {
      rowTags: false,
      async open(watch) {
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
    },
    "query of mysql2": {
      rowTags: false,
      async open(watch) {
        const pool = watch(db.pool());
        return {
          async read() {
            const [rows] = await pool.query<RowDataPacket[]>("SELECT name FROM users WHERE id = ?", [1]);
            return String(rows[0]?.name);
          },
        };
      },
    },
    knex: {
      rowTags: false,
      async open(watch) {
        const session = watch(mysqlKnex(db));
        return {
          read: knexRows(session).read,
          stream: async () => session("users").select("name").stream(),
        };
      },
    },
    kysely: {
      rowTags: false,
      async open(watch) {
        const pool = mysql2.createPool({ ...db.mariadb.at(db.name), connectionLimit: 4 });
        db.atEnd(() => pool.promise().end());
        const session = new Kysely<Schema>({ dialect: new MysqlDialect({ pool: watch(pool) }) });
        return {
          read: kyselyRows(session).read,
          stream: async () => session.selectFrom("users").select("name").stream(),
        };
      },
    },
    drizzle: {
      rowTags: false,
      async open(watch) {
        const session = watch(mysqlDrizzle(db.pool()));
        return {
          read: mysqlDrizzleRows(session).read,
          stream: async () => session.select().from(mysqlUsers).prepare().iterator(),
        };
      },
    },
    typeorm: {
      rowTags: false,
      async open(watch) {
        const { manager } = watch(await mysqlSource(db));
        return {
          read: managerRows(manager, "?").read,
          stream: async () => await manager.createQueryBuilder(userSchema, "u").select("u.name").stream(),
        };
      },
    },
    Sequelize: {
      rowTags: false,
      async open(_, feed) {
        const { host, port, user, database } = db.mariadb.at(db.name);
        const dialectModule = cachedMysql2(mysql2, { cache: db.cache, tableName: "users", feed });
        const at = { dialect: "mysql", dialectModule, host, port, username: user, database } as const;
        const sequelize = new Sequelize({ logging: false, ...at });
        db.atEnd(() => sequelize.close());
        return { read: define(sequelize) };
      },
    },
  });
});

describe("over SQLite", () => {
  const file = sqliteFile();
  features(file, {
    knex: {
      rowTags: false,
      open: async (watch) => ({ read: knexRows(watch(sqliteKnex(file))).read }),
    },
    kysely: {
      rowTags: false,
      async open(watch) {
        const session = watch(new Kysely<Schema>({ dialect: sqliteDialect(file) }));
        return {
          read: kyselyRows(session).read,
          stream: async () => session.selectFrom("users").select("name").stream(),
        };
      },
    },
    drizzle: {
      rowTags: false,
      open: async (watch) => ({ read: remoteRows(watch(sqliteRemote(file))).read }),
    },
    typeorm: {
      rowTags: false,
      open: async (watch) => ({ read: managerRows(watch(await sqliteSource(file)).manager, "?").read }),
    },
    prisma: {
      rowTags: false,
      async open(watch) {
        const Client = await generateClient("sqlite");
        const client = new Client({ adapter: new PrismaLibSql({ url: `file:${file.path}` }) });
        file.atEnd(() => client.$disconnect());
        return { read: prismaRows(watch(client)).read };
      },
    },
  });
});
