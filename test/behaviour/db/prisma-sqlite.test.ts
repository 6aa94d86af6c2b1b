// Sessions of prisma over SQLite, through its adapter for libsql.
import { PrismaLibSql } from "@prisma/adapter-libsql";
import { beforeAll, describe, expect, test } from "vitest";
import { cachedAdapter, prismaCache } from "../../../src/db/prisma.ts";
import { cachedDependency } from "../../db/database.ts";
import { libraryRules } from "../../db/library-rules.ts";
import { type Client, type ClientClass, generateClient, prismaRows } from "../../db/prisma-client.ts";
import { sqliteFile } from "../../db/sqlite.ts";

const file = sqliteFile();
let PrismaClient: ClientClass;

beforeAll(async () => {
  PrismaClient = await generateClient("sqlite");
});

const adapter = () => new PrismaLibSql({ url: `file:${file.path}` });

function open(options: object = { adapter: adapter() }): Client {
  const client = new PrismaClient(options);
  file.atEnd(() => client.$disconnect());
  return client;
}

libraryRules("prisma over SQLite", { database: file, open: async () => open(), rows: prismaRows });

const options = () => ({ cache: file.cache, tableName: ["users", "orders"] });
const read = (client: Client) =>
  client.user.findUniqueOrThrow({ where: { id: 1 }, include: { orders: true } });
const nameIn = async (client: Client) => (await read(client)).name;

describe("prisma over libsql", () => {
  test.each<[string, () => Client]>([
    ["an extension", () => open().$extends(prismaCache(options()))],
    ["an adapter", () => open({ adapter: cachedAdapter(adapter(), options()) })],
  ])("is watched through %s, with the tables of its relations", async (_, make) => {
    file.raw.exec("INSERT INTO orders VALUES (7, 1)");
    const client = make();
    const ada = { id: 1, name: "Ada", orders: [{ id: 7, userId: 1 }] };
    expect(await read(client)).toEqual(ada);
    file.raw.exec("DELETE FROM orders");
    await file.changeBehind("Bob");
    expect(await read(client)).toEqual(ada);
    await client.$transaction(async (transaction) => {
      await transaction.user.update({ where: { id: 1 }, data: { name: "Cy" } });
      expect(file.cache.invalidated).toEqual([]);
    });
    expect(file.cache.invalidated).toEqual([["table:users"]]);
    expect(await nameIn(client)).toBe("Cy");
  });

  test("tells values of different types apart, and gives them back as they are", async () => {
    const [real, client] = [open(), cachedDependency(open, options())()];
    const ask = (session: Client, value: unknown) =>
      session.$queryRaw`select name, ${value} as v from users where id = 1`;
    const values = [1, "1", new Uint8Array([1, 255])];
    const answers = await Promise.all(values.map((value) => ask(real, value)));
    for (const round of ["loaded", "cached"]) {
      for (const [at, value] of values.entries())
        expect(await ask(client, value), round).toEqual(answers[at]);
      await file.changeBehind("Bob");
    }
    expect(await file.cache.keys()).toHaveLength(3);
  });

  test("invalidates nothing for a transaction that the database has ended by itself", async () => {
    const client = cachedDependency(open, options())();
    await nameIn(client);
    const transaction = client.$transaction(async (inner) => {
      await inner.$executeRaw`update users set name = 'undone' where id = 1`;
      await inner.$executeRaw`insert or rollback into users values (1, 'again')`;
    });
    await expect(transaction).rejects.toThrow();
    expect(file.cache.invalidated).toEqual([]);
    await client.$executeRaw`update users set name = 'Bob' where id = 1`;
    expect(await nameIn(client)).toBe("Bob");
  });

  test("is not cached in memory, where each connection has a database of its own", async () => {
    const client = cachedDependency(
      () => open({ adapter: new PrismaLibSql({ url: ":memory:" }) }),
      options(),
    )();
    await client.$executeRaw`create table users (id integer primary key, name text)`;
    await client.$executeRaw`insert into users values (1, 'Ada')`;
    await client.$queryRaw`select name from users`;
    expect(await file.cache.keys()).toEqual([]);
  });

  test("invalidates what a script has written, whatever it leaves open", async () => {
    const watched = await cachedAdapter(adapter(), options()).connect();
    const ask = async () =>
      (await watched.queryRaw({ sql: "select name from users", args: [], argTypes: [] })).rows[0]?.[0];
    expect(await ask()).toBe("Ada");
    await watched.executeScript("UPDATE users SET name = 'Bob'; BEGIN; UPDATE users SET name = 'undone'");
    expect(file.cache.invalidated).toEqual([["table:users"]]);
    expect(await ask()).toBe("Bob");
    expect(await file.cache.keys()).toHaveLength(1);
    await watched
      .executeScript("UPDATE users SET name = 'Cy'; INSERT INTO users VALUES (1, 'x')")
      .catch(() => {});
    expect(await ask()).toBe("Cy");
    file.cache.invalidated.length = 0;
    await watched.executeRaw({ sql: "UPDATE users SET name = 'Di'", args: [], argTypes: [] });
    expect(file.cache.invalidated).toEqual([["table:users"]]);
    expect(await ask()).toBe("Di");
    await watched.dispose();
  });
});
