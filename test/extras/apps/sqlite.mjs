// A SQLite file with one user.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";

export { Database };
export const path = join(mkdtempSync(join(process.cwd(), "data-")), "app.db");
const database = new Database(path);
database.exec("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)");
database.exec("INSERT INTO users VALUES (1, 'Ada')");
database.close();
