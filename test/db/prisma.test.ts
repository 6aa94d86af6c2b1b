// Sessions of prisma over PostgreSQL, as a client, an extension and an adapter.
import { PrismaPg } from "@prisma/adapter-pg";
import { beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { cachedAdapter, prismaCache } from "../../src/db/prisma.ts";
import { cachedDependency, testDatabase } from "./database.ts";
import { libraryRules } from "./library-rules.ts";
import { type Client, type ClientClass, generateClient, prismaRows } from "./prisma-client.ts";

const db = testDatabase();
let PrismaClient: ClientClass;

beforeAll(async () => {
  PrismaClient = await generateClient();
});

function open(): Client {
  const client = new PrismaClient({ adapter: new PrismaPg(db.server.at(db.name)) });
  db.atEnd(() => client.$disconnect());
  return client;
}

libraryRules("prisma over PostgreSQL", { database: db, open: async () => open(), rows: prismaRows });

const options = () => ({ cache: db.cache, tableName: ["users", "orders"] });
const read = (client: Client) =>
  client.user.findUniqueOrThrow({ where: { id: 1 }, include: { orders: true } });
const ada = { id: 1, name: "Ada", orders: [{ id: 7, userId: 1 }] };

describe("prisma", () => {
  test.each<[string, () => Client]>([
    ["an extension", () => open().$extends(prismaCache(options()))],
    [
      "an adapter",
      () => {
        const adapter = cachedAdapter(new PrismaPg(db.server.at(db.name)), options());
        const client = new PrismaClient({ adapter });
        db.atEnd(() => client.$disconnect());
        return client;
      },
    ],
  ])("is watched through %s, with the tables of its relations", async (_, make) => {
    await db.raw.query("INSERT INTO orders VALUES (7, 1)");
    const client = make();
    expect(await read(client)).toEqual(ada);
    await db.raw.query("DELETE FROM orders");
    await db.changeBehind("Bob");
    expect(await read(client)).toEqual(ada);
    await client.$transaction(async (transaction) => {
      await transaction.user.update({ where: { id: 1 }, data: { name: "Cy" } });
      expect(db.cache.invalidated).toEqual([]);
    });
    expect(db.cache.invalidated).toEqual([["table:users"]]);
    expect((await read(client)).name).toBe("Cy");
  });

  test("takes no connection for what is cached, and ends with the client it was made of", async () => {
    const pool = db.pool({ max: 1 });
    const real = new PrismaClient({ adapter: new PrismaPg(pool), log: [{ emit: "event", level: "query" }] });
    const client = cachedDependency(() => real, options())();
    let queries = 0;
    client.$on("query", () => queries++);
    const name = async () => (await client.user.findUniqueOrThrow({ where: { id: 1 } })).name;
    await name();
    expect(queries).toBeGreaterThan(0);
    const held = await pool.connect();
    expect(await name()).toBe("Ada");
    held.release();
    await real.$disconnect();
    expectTypeOf(cachedDependency(open, { tableName: "users" })).toEqualTypeOf<typeof open>();
    expectTypeOf(prismaCache(options())(real)).toEqualTypeOf<Client>();
  });

  test("is refused over any other adapter", () => {
    for (const handed of [{}, undefined, null, 5]) {
      expect(() => prismaCache(options())(handed as object)).toThrow("@prisma/adapter-pg");
      expect(() => cachedAdapter(handed as never, options())).toThrow("@prisma/adapter-pg");
    }
  });
});
