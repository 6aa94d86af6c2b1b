// Sequelize 6 over a watched pg.
import pg from "pg";
import { describe, expect, test } from "vitest";
import { cachedModule } from "../../src/db/pg.ts";
import { testDatabase } from "./database.ts";
import { sequelizeRules } from "./sequelize-rules.ts";

const db = testDatabase();

describe("Sequelize over PostgreSQL", () => {
  sequelizeRules(db, () => {
    const { host, port, user, database } = db.server.at(db.name);
    const dialectModule = cachedModule(pg, { cache: db.cache, tableName: "users" });
    return { dialect: "postgres", dialectModule, host, port, username: user, database } as never;
  });

  test("refuses what cannot be watched", () => {
    const options = { cache: db.cache, tableName: "users" };
    expect(() => cachedModule({}, options)).toThrow("expected the package pg");
    expect(() => cachedModule(pg, options).native).toThrow("pg-native");
  });
});
