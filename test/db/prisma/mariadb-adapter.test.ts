// Sessions of prisma over MariaDB, as a client, an extension and an adapter.
import { PrismaMariaDb } from "@prisma/adapter-mariadb";
import { beforeAll, describe, expect, test } from "vitest";
import { cachedAdapter, prismaCache } from "../../../src/db/prisma.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { until } from "../../support/until.ts";
import { cachedDependency, cachedDependencyWith } from "../database.ts";
import { libraryRules } from "../library-rules.ts";
import { mysqlDatabase } from "../mysql-database.ts";
import { type Client, type ClientClass, generateClient, prismaRows } from "../prisma-client.ts";

const db = mysqlDatabase();
let PrismaClient: ClientClass;

beforeAll(async () => {
  PrismaClient = await generateClient("mysql");
});

function adapterOf(options: object = {}): PrismaMariaDb {
  const { host, port, user, database } = db.mariadb.at(db.name);
  return new PrismaMariaDb({ host, port, user, database, connectionLimit: 4, ...options } as never);
}

function open(adapter: object = adapterOf()): Client {
  const client = new PrismaClient({ adapter });
  db.atEnd(() => client.$disconnect());
  return client;
}

libraryRules("prisma over MariaDB", { database: db, open: async () => open(), rows: prismaRows });

const options = () => ({ cache: db.cache, tableName: ["users", "orders"] });
const watched = (client: Client): Client => cachedDependency(() => client, options())();
const read = (client: Client) =>
  client.user.findUniqueOrThrow({ where: { id: 1 }, include: { orders: true } });
const nameIn = async (client: Client) => (await read(client)).name;
const USERS = ["table:users"];

/** The connection whose update waits for a lock. */
async function waiting(): Promise<number | undefined> {
  const [rows] = await db.raw.query(
    "SELECT ID AS id FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Updating%' AND ID <> CONNECTION_ID()",
  );
  return (rows as { readonly id: number }[])[0]?.id;
}

describe("prisma over MariaDB", () => {
  test.each<[string, () => Client]>([
    ["an extension", () => open().$extends(prismaCache(options()))],
    ["an adapter", () => open(cachedAdapter(adapterOf(), options()))],
  ])("is watched through %s, with the tables of its relations", async (_, make) => {
    await db.raw.query("INSERT INTO orders VALUES (7, 1)");
    const client = make();
    const ada = { id: 1, name: "Ada", orders: [{ id: 7, userId: 1 }] };
    expect(await read(client)).toEqual(ada);
    await db.raw.query("DELETE FROM orders");
    await db.changeBehind("Bob");
    expect(await read(client)).toEqual(ada);
    await client.$transaction(async (transaction) => {
      await transaction.user.update({ where: { id: 1 }, data: { name: "Cy" } });
      expect(db.cache.invalidated).toEqual([]);
    });
    expect(db.cache.invalidated).toEqual([USERS]);
    expect(await nameIn(client)).toBe("Cy");
  });

  test("takes no connection for what is cached", async () => {
    const client = watched(open(adapterOf({ connectionLimit: 1, acquireTimeout: 200 })));
    await read(client);
    await client.$transaction(async () => {
      expect(await nameIn(client)).toBe("Ada");
    });
  });

  test.each([false, true])(
    "gives values back as they are; by the text protocol: %s",
    async (useTextProtocol) => {
      await db.raw.query(`CREATE TABLE things (id bigint PRIMARY KEY, t time(3), d decimal(20, 7), v varchar(30), f float, g double,
        y year, da date, dt datetime(6), bl blob, j json, tiny tinyint(1), b bit(10), n int, u int unsigned);
      INSERT INTO things VALUES (9007199254740993, '10:00:00.5', 1234567890.1234567, 'ä', 1.5, 2.5, 2026, '2026-01-02',
        '2026-01-02 03:04:05.678901', x'00ff', '{"a":1}', 1, b'1010101010', NULL, 4294967295)`);
      const { host, port, user, database } = db.mariadb.at(db.name);
      const adapter = () => new PrismaMariaDb({ host, port, user, database } as never, { useTextProtocol });
      const bare = await open(adapter()).$queryRaw`SELECT * FROM things WHERE id > ${1}`;
      const client = cachedDependency(() => open(adapter()), { cache: db.cache, tableName: "things" })();
      for (const round of ["loaded", "cached"])
        expect(await client.$queryRaw`SELECT * FROM things WHERE id > ${1}`, round).toEqual(bare);
      expect(await db.cache.keys()).toHaveLength(1);
      expect(await client.$queryRaw`SELECT v FROM things WHERE v = ${"ä"}`).toEqual([{ v: "ä" }]);
      expect(await client.$queryRaw`SELECT v FROM things WHERE v = ${"b"}`).toEqual([]);
    },
  );

  test("keeps to the isolation level that a transaction asks for", async () => {
    const client = watched(open());
    await read(client);
    await client.$transaction(
      async (transaction) => {
        await transaction.$queryRaw`SELECT name FROM users FOR UPDATE`;
        const rows = await transaction.$queryRaw`SELECT trx_isolation_level AS level
          FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = CONNECTION_ID()`;
        expect(rows).toEqual([{ level: "SERIALIZABLE" }]);
      },
      { isolationLevel: "Serializable" },
    );
  });

  test("invalidates what is written in one call, by the batch and by a statement that commits by itself", async () => {
    const client = watched(open());
    await read(client);
    await client.$executeRaw`UPDATE users SET name = 'Bob'`;
    expect(await nameIn(client)).toBe("Bob");
    await client.$transaction(async (transaction) => {
      await transaction.$executeRaw`UPDATE users SET name = 'Cy'`;
      // DDL commits what was written before it.
      await transaction.$executeRaw`CREATE TABLE others (id int)`;
      expect(await nameIn(client)).toBe("Cy");
    });
    expect(db.cache.invalidated.filter((tags) => tags.includes("table:users"))).toHaveLength(2);
  });

  test("invalidates nothing when a deadlock ends its transaction, and goes on", async () => {
    await db.raw.query("INSERT INTO users VALUES (2, 'Two')");
    const client = watched(open());
    await read(client);
    // The transaction that has written less is the one that is ended.
    await db.raw.query("START TRANSACTION; INSERT INTO orders SELECT seq, 1 FROM seq_1_to_100");
    await db.raw.query("UPDATE users SET name = 'x' WHERE id = 2");
    let hasFirst = false;
    const losing = client.$transaction(async (transaction) => {
      await transaction.user.update({ where: { id: 1 }, data: { name: "lost" } });
      hasFirst = true;
      await transaction.user.update({ where: { id: 2 }, data: { name: "lost" } });
    });
    const failed = expect(losing).rejects.toThrow();
    await until(async () => hasFirst && (await waiting()) !== undefined, { what: "the transaction waits" });
    await db.raw.query("UPDATE users SET name = 'y' WHERE id = 1");
    await failed;
    await db.raw.query("ROLLBACK");
    expect(db.cache.invalidated).toEqual([]);
    expect(await nameIn(client)).toBe("Ada");
    await client.user.update({ where: { id: 1 }, data: { name: "Bob" } });
    expect(await nameIn(client)).toBe("Bob");
  });

  test("repeats the invalidation of what may have been written", async () => {
    const clock = new ManualClock();
    const client = cachedDependencyWith(clock)(open, options())();
    await read(client);
    await db.raw.query("START TRANSACTION; UPDATE users SET name = 'locked' WHERE id = 1");
    const writing = client.$executeRaw`UPDATE users SET name = 'Bob' WHERE id = 1`;
    const failed = expect(writing).rejects.toThrow();
    await until(async () => (await waiting()) !== undefined, { what: "the write waits for the lock" });
    await db.raw.query(`KILL ${await waiting()}`);
    await failed;
    await db.raw.query("ROLLBACK");
    // What a lost connection wrote besides cannot be asked.
    const all = ["table:users", "table:orders"];
    expect(db.cache.invalidated).toEqual([all]);
    await clock.advance(2_000);
    expect(db.cache.invalidated).toEqual([all, all, all]);
    expect(await nameIn(client)).toBe("Ada");
  });
});
