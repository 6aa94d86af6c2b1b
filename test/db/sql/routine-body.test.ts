// Which tables the body of a trigger writes; whatever cannot be read may write anything.
import { describe, expect, test } from "vitest";
import { writtenByFunction, writtenIn } from "../../../src/db/sql/routine-body.ts";

const body = (statements: string) => `DECLARE n int; BEGIN ${statements} RETURN NEW; END`;

describe("the body of a trigger", () => {
  test.each([
    ["NEW.at := now();", []],
    ["IF (TG_OP = 'UPDATE') THEN PERFORM pg_notify('a', lower(NEW.name)); END IF;", []],
    [
      "INSERT INTO app.audit (id, at) VALUES (NEW.id, now()) ON CONFLICT DO UPDATE SET at = now();",
      ["audit"],
    ],
    ['UPDATE "Order" SET n = 1; DELETE FROM ONLY items;', ["Order", "items"]],
    ["SELECT count(*) INTO n FROM users FOR UPDATE;", ["n"]],
  ])("%s writes what it names", (statements, tables) => {
    expect(writtenByFunction(body(statements), "plpgsql")).toEqual({ tables, anything: false });
  });

  test.each([
    "EXECUTE 'DELETE FROM users';",
    "CALL cleaned();",
    "PERFORM own(NEW.id);",
    'PERFORM "lower"(NEW.id);',
    "n := app.lower(NEW.id);",
    "TRUNCATE users;",
    "n := U&'x';",
  ])("%s may write anything", (statements) => {
    expect(writtenByFunction(body(statements), "plpgsql").anything).toBe(true);
  });

  test("in a language that is not read may write anything, unless it is the database's own", () => {
    expect(writtenByFunction("lower", "c").anything).toBe(true);
    expect(writtenByFunction("tsvector_update_trigger_byid", "internal").anything).toBe(false);
  });

  test("of SQLite is part of the text that creates the trigger", () => {
    const text =
      "CREATE TRIGGER t AFTER UPDATE OF a ON users BEGIN REPLACE INTO notes VALUES (own(1)); UPDATE OR IGNORE x SET a = 1; END";
    expect(writtenIn(text, "sqlite")).toEqual({ tables: ["of", "notes", "x"], anything: false });
  });
});
