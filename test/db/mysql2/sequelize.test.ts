// Sequelize 6 over a watched mysql2.
import mysql2 from "mysql2";
import { describe, expect, test } from "vitest";
import { cachedModule } from "../../../src/db/mysql2.ts";
import { mysqlDatabase } from "../mysql-database.ts";
import { sequelizeRules } from "../sequelize-rules.ts";

const db = mysqlDatabase();

describe("Sequelize over MariaDB", () => {
  sequelizeRules(db, () => {
    const { host, port, user, database } = db.mariadb.at(db.name);
    const dialectModule = cachedModule(mysql2, { cache: db.cache, tableName: "users" });
    return { dialect: "mysql", dialectModule, host, port, username: user, database };
  });

  test("refuses what cannot be watched", () => {
    const options = { cache: db.cache, tableName: "users" };
    expect(() => cachedModule({}, options)).toThrow("expected the package mysql2");
    // As mysql2/promise does.
    const promising = { createConnection: async () => ({}) };
    expect(() => cachedModule(promising, options).createConnection()).toThrow("mysql2 with callbacks");
  });
});
