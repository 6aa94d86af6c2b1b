// db feed: what it prints, and how it refuses.
import { beforeAll, expect, test } from "vitest";
import { installedProgram, jsonLines, xcache } from "./installed.ts";

beforeAll(() => {
  installedProgram();
});

test("--sql prints the statements and connects to nothing", async () => {
  const { code, stdout, stderr } = await xcache([
    "db",
    "feed",
    "--sql",
    "--table",
    "users",
    "--table",
    "App.Orders",
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain('CREATE PUBLICATION xcache FOR TABLE users, "App"."Orders";\n');
  const notify = await xcache(["db", "feed", "--sql", "--notify", "--table", "users", "--json"]);
  expect(jsonLines(notify)).toEqual([{ sql: expect.stringContaining("CREATE TRIGGER xcache AFTER INSERT") }]);
});

test.each([
  [["db", "feed"], "pass either --check or --sql"],
  [["db", "feed", "--check", "--sql"], "pass either --check or --sql"],
  [["db", "fed", "--check"], 'unknown topic "fed"'],
  [["db", "feed", "--sql"], "--sql needs the tables"],
  [["db", "feed", "--check"], "--check needs the database"],
])("%j is refused with exit code 2", async (args, message) => {
  const { code, stderr } = await xcache(args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});
