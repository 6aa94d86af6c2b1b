// The examples of all libraries run, and show a change to the next read.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { whyStale } from "../../../scripts/build/build.mjs";
import { startMariadb } from "../../support/mariadb.ts";
import { type PostgresServer, startPostgres } from "../../support/postgres.ts";
import { until } from "../../support/until.ts";

const EXAMPLES = join(import.meta.dirname, "../../../examples");

let server: PostgresServer;
let app: ChildProcess | undefined;

beforeAll(async () => {
  expect(whyStale(), "dist does not match src: run `npm run build`").toBeUndefined();
  server = await startPostgres({ wal_level: "logical" });
});
afterAll(() => server?.stop());
afterEach(async () => {
  const ended = new Promise((resolve) => app?.once("exit", resolve));
  app?.kill();
  await ended;
});

function postgresAt(database: string): NodeJS.ProcessEnv {
  const { host, port, user } = server.at(database);
  return {
    PGHOST: host,
    PGPORT: String(port),
    PGUSER: user,
    PGDATABASE: database,
    DATABASE_URL: `postgres://${user}@${host}:${port}/${database}`,
  };
}

/** The address that it prints. */
function start(name: string, database: NodeJS.ProcessEnv): Promise<string> {
  const started = spawn(process.execPath, [join(EXAMPLES, name, "app.mjs")], {
    env: { ...process.env, PORT: "0", ...database },
    stdio: ["ignore", "pipe", "pipe"],
  });
  app = started;
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      const address = /http:\S+/.exec(said);
      if (address !== null) resolve(address[0]);
    };
    started.stdout.on("data", hear);
    started.stderr.on("data", hear);
    started.once("exit", () => reject(new Error(said)));
  });
}

async function userAt(address: string, method = "GET"): Promise<unknown> {
  const response = await fetch(address, { method });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  return (JSON.parse(text) as { readonly user: unknown }).user;
}

const LIBRARIES = ["pg", "postgres", "knex", "kysely", "drizzle", "typeorm", "prisma", "sequelize"];

test.each(LIBRARIES)("%s", async (name) => {
  if (name === "prisma") await generatePrisma();
  await showsChanges(await start(name, postgresAt(await server.createDatabase())));
});

test("mysql2", async () => {
  await using mariadb = await startMariadb();
  const { host, port, user, database } = mariadb.at(await mariadb.createDatabase());
  await showsChanges(await start("mysql2", { DATABASE_URL: `mysql://${user}@${host}:${port}/${database}` }));
});

async function showsChanges(address: string): Promise<void> {
  for (const _ of ["loaded", "cached"]) expect(await userAt(address)).toEqual({ id: 1, name: "Ada" });
  expect(await userAt(`${address}?name=Grace`, "PUT")).toEqual({ id: 1, name: "Grace" });
  expect(await userAt(address)).toEqual({ id: 1, name: "Grace" });
}

test("feed", async () => {
  const database = await server.createDatabase();
  const address = await start("feed", postgresAt(database));
  for (const _ of ["loaded", "cached"]) expect(await userAt(address)).toEqual({ id: 1, name: "Ada" });
  const outside = new pg.Client(server.at(database));
  await outside.connect();
  await outside.query("UPDATE users SET name = 'Grace' WHERE id = 1");
  await outside.end();
  await until(async () => ((await userAt(address)) as { readonly name: string }).name === "Grace", {
    what: "the change of another program is seen",
  });
});

/** As its README says. None of prisma's engines is run for it. */
async function generatePrisma(): Promise<void> {
  const cli = createRequire(import.meta.url).resolve("prisma/build/index.js");
  const args = [cli, "generate", "--schema", join(EXAMPLES, "prisma", "schema.prisma")];
  await promisify(execFile)(process.execPath, args, {
    cwd: join(EXAMPLES, "prisma"),
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath },
  });
}
