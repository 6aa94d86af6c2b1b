// db feed: its output and its errors.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { startMariadb } from "../../support/mariadb.ts";
import { bareEnvironment, installedProgram, jsonLines, type Ran, xcache } from "./installed.ts";

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
  [
    ["db", "feed", "--check", "--connection", "mssql://sa:secret@localhost/shop"],
    'unknown protocol "mssql" of the database',
  ],
  [["db", "feed", "--sql", "--connection", "mysql://localhost"], "the address names no database"],
  [
    ["db", "feed", "--sql", "--notify", "--connection", "mysql://localhost/shop"],
    "--notify is for PostgreSQL",
  ],
])("%j is refused with exit code 2", async (args, message) => {
  const { code, stderr } = await xcache(args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("secret");
});

test("--sql for MariaDB names the database of the address", async () => {
  const address = "mariadb://root:secret@localhost/my%20shop";
  const { code, stdout } = await xcache(["db", "feed", "--sql"], { env: { DATABASE_URL: address } });
  expect(code).toBe(0);
  expect(stdout).toContain("GRANT REFERENCES ON `my shop`.* TO 'xcache_feed'@'%';\n");
  expect(stdout).not.toContain("secret");
});

test("--check without the driver says what to install", async () => {
  const { code, stderr } = await xcache(["db", "feed", "--check", "--connection", "mysql://localhost/shop"]);
  expect(code).toBe(4);
  expect(stderr).toMatch(/needs the package "?mysql2/);
});

/** Runs the compiled program in the repository, where the drivers are installed. */
function built(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ran> {
  const program = join(import.meta.dirname, "../../../dist/cli/main.js");
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [program, ...args],
      { env: bareEnvironment(env) },
      (_, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    );
  });
}

test("--check of MariaDB prints findings and exits 1 if one is a problem", async () => {
  const server = await startMariadb(["--log-bin=log", "--server-id=1", "--binlog-format=ROW"]);
  try {
    const DATABASE_URL = `mariadb://test@127.0.0.1:${server.port}/${await server.createDatabase()}`;
    const lacking = await built(["db", "feed", "--check", "--table", "users"], { DATABASE_URL });
    expect(lacking.code).toBe(1);
    expect(lacking.stdout).toMatch(/tables: test_1 has no table users, or the user has no privilege on it/);
    const ready = await built(["db", "feed", "--check", "--json"], {
      DATABASE_URL: DATABASE_URL.replace(/test_1$/, "mysql"),
    });
    expect(ready.code).toBe(0);
    expect(jsonLines(ready)).toEqual([
      {
        ok: true,
        findings: expect.arrayContaining([expect.objectContaining({ name: "log_bin", state: "ok" })]),
      },
    ]);
  } finally {
    await server.stop();
  }
  const { code, stderr } = await built(
    ["db", "feed", "--check", "--connection", `mysql://test:secret@127.0.0.1:${server.port}/shop`],
    {},
  );
  expect(code).toBe(3);
  expect(stderr).toContain("the database cannot be reached");
  expect(stderr).not.toContain("secret");
});
